package prom_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/with/prom"
)

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
	c := newCollector(t, gc.Config{})
	described := make(chan *prometheus.Desc, 100)
	prom.New(c).Describe(described)
	close(described)
	known := map[string]bool{}
	texts := sha256.New() // whoever changes a name, a label or a text writes the new digest here
	for d := range described {
		fmt.Fprintln(texts, d)
		name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]
		known[name] = true
		if strings.HasSuffix(name, "pause_seconds") {
			known[name+"_sum"], known[name+"_bucket"] = true, true
		}
	}
	if sum := fmt.Sprintf("%.6x", texts.Sum(nil)); sum != "ba6b2e113aee" {
		t.Errorf("the descriptions have changed: their digest is %s", sum)
	}
	alerts, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	exprs := []string{string(alerts)}
	for _, q := range dashboard(t) {
		exprs = append(exprs, q.expr)
	}
	for _, text := range exprs {
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
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("not checked (Debian: apt-get install prometheus):", err)
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
