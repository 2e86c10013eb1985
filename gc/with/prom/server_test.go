package prom_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/with/prom"
	"github.com/eagergc/eagergc/pool/array"
)

// tool returns a program of Debian's package prometheus, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("not checked: no %s on this machine (Debian: apt-get install prometheus): %v", name, err)
	}
	return path
}

// A query of the dashboard and the panel that it is in.
type query struct{ panel, expr string }

func dashboard(t *testing.T) (all []query) {
	t.Helper()
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies on %q, or beside the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, q := range p.Targets {
			all = append(all, query{p.Title, q.Expr})
		}
	}
	return all
}

var metric = regexp.MustCompile(`eagergc_[a-z_]+`)

// Every metric that the dashboard and the alerts name is exported.
func TestDashboardAndAlertsNameWhatThereIs(t *testing.T) {
	c, err := gc.New(gc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	described := make(chan *prometheus.Desc, 100)
	prom.New(c).Describe(described)
	close(described)
	known := map[string]bool{}
	for d := range described {
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]
		known[name] = true
		if strings.HasSuffix(name, "pause_seconds") {
			known[name+"_sum"], known[name+"_bucket"] = true, true
		}
	}
	alerts, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(alerts)}
	for _, q := range dashboard(t) {
		texts = append(texts, q.expr)
	}
	for _, text := range texts {
		for _, name := range metric.FindAllString(text, -1) {
			if !known[name] {
				t.Errorf("%s is not exported: %s", name, text)
			}
		}
	}
	if n := strings.Count(string(alerts), "- alert:"); n != 4 || strings.Count(string(alerts), "todo:") != n {
		t.Errorf("%d alerts, not each with what to do", n)
	}
}

// The rules are right by promtool, and each alert fires when it should and only then.
func TestAlerts(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// busy is a program whose every metric moves: it is served, and goes on until the
// test ends.
func busy(t *testing.T) *httptest.Server {
	c, pools := program(t, 1)
	if _, err := pools[0].Alloc(17<<20, 0); err == nil {
		t.Fatal("17 MiB of 16 are to be had")
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			_, _ = array.New[byte](pools[0], 1<<20)
			if i%50 == 0 {
				_, _ = pools[0].Alloc(17<<20, 0) // is refused
			}
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(prom.New(c, pools...))
	server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	t.Cleanup(server.Close)
	return server
}

// A real Prometheus scrapes a program, in the format OpenMetrics, and answers every
// query of the dashboard with figures, and promtool has nothing to say of the names.
func TestDashboardInPrometheus(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Prometheus")
	}
	prometheus, promtool := tool(t, "prometheus"), tool(t, "promtool")
	server := busy(t)
	answer, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lint := exec.Command(promtool, "check", "metrics")
	lint.Stdin = answer.Body
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	base := start(t, prometheus, strings.TrimPrefix(server.URL, "http://"))
	wait := func(expr string) []any {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			found, err := ask(base, expr)
			if err == nil && len(found) > 0 {
				return found
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v, %v", expr, found, err)
			}
		}
	}
	wait(`count_over_time(eagergc_policy_info[1m]) > 3`)
	for _, q := range dashboard(t) {
		expr := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1m", "$job", ".+", "$instance", ".+").Replace(q.expr)
		if strings.Contains(expr, "$") {
			t.Errorf("%s: a variable that the test does not know: %s", q.panel, expr)
		}
		wait("(" + expr + ") >= 0") // NaN is no figure
	}
	if found := wait(`eagergc_exposed_pause_seconds_bucket{le="0.05"}`); len(found) != 1 {
		t.Errorf("%v", found)
	}
}

// start starts a Prometheus that scrapes target, and returns its address.
func start(t *testing.T, prometheus, target string) string {
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 500ms}\nscrape_configs: [{job_name: test, static_configs: [{targets: [%q]}]}]\nrule_files: [%q]\n",
		target, must(filepath.Abs("alerts.yml")))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	address := listener.Addr().String()
	listener.Close()
	cmd := exec.Command(prometheus, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	log := new(strings.Builder)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	return "http://" + address
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ask returns the result of a query.
func ask(base, expr string) ([]any, error) {
	r, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	return answer.Data.Result, nil
}
