package debug_test

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/gc/debug/flight"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// program is a collector, a pool with a limit, and some garbage in it.
func program(t testing.TB) (*gc.Collector, *pool.Pool) {
	t.Helper()
	c, err := gc.New(gc.Config{Policy: gc.MustParse("cudajl").New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p, err := pool.New(pool.Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for range 100 {
		if _, err := pool.NewArray[byte](p, 1<<20, 0); err != nil {
			t.Fatal(err)
		}
	}
	return c, p
}

// recorded is a program whose last minutes are kept.
func recorded(t testing.TB) (*gc.Collector, *pool.Pool, *flight.Recorder) {
	t.Helper()
	c, p := program(t)
	last := flight.New(trace.WindowConfig{})
	t.Cleanup(func() {
		if err := last.Close(); err != nil {
			t.Error(err)
		}
	})
	c.SetRecorder(last)
	p.SetTrace(last)
	for range 200 {
		if _, err := pool.NewArray[byte](p, 1<<20, 0); err != nil {
			t.Fatal(err)
		}
	}
	return c, p, last
}

func get(h http.Handler, method, target, remote string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = remote
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const here = "127.0.0.1:1234"

func TestPageAndJSONTellTheSame(t *testing.T) {
	c, p := program(t)
	h := debug.Handler(c, p)
	w := get(h, "GET", "http://localhost:8080/debug/eagergc?format=json", here)
	var s debug.Status
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	stats := c.Stats()
	if s.Policy != "cudajl" || len(s.Spaces) != 1 || s.Spaces[0].Limit != 64<<20 || s.Spaces[0].Live == 0 ||
		s.Cycles["policy"] != stats.Cycles[gc.TriggerPolicy] || s.Freed != stats.Freed || len(s.Last) == 0 || len(s.Decided) == 0 {
		t.Errorf("%+v", s)
	}
	body := get(h, "GET", "http://127.0.0.1/debug/eagergc", here).Body.String()
	for _, want := range []string{"policy cudajl", "<h2>host</h2>", "64.00 MiB", "<td class=\"t\">policy<td class=\"t\">block", "pressure"} {
		if !strings.Contains(body, want) {
			t.Errorf("page lacks %q", want)
		}
	}
}

func TestOnlyThisMachineMayRead(t *testing.T) {
	c, p := program(t)
	h := debug.Handler(c, p)
	for _, tc := range []struct {
		method, target, remote string
		want                   int
	}{
		{"GET", "http://localhost/debug/eagergc", here, 200},
		{"GET", "http://[::1]:80/debug/eagergc", "[::1]:99", 200},
		{"GET", "http://[::1]/debug/eagergc", "[::ffff:127.0.0.1]:99", 200},
		{"HEAD", "http://127.0.0.2/debug/eagergc", here, 200},
		{"GET", "http://localhost/debug/eagergc", "10.0.0.1:99", 403},
		{"GET", "http://evil.example/debug/eagergc", here, 403},
		{"GET", "http://localhost.evil.example/debug/eagergc", here, 403},
		{"POST", "http://localhost/debug/eagergc", here, 405},
		{"DELETE", "http://localhost/debug/eagergc?format=json", here, 405},
	} {
		if w := get(h, tc.method, tc.target, tc.remote); w.Code != tc.want {
			t.Errorf("%s %s from %s: %d, want %d", tc.method, tc.target, tc.remote, w.Code, tc.want)
		}
	}
}

// As it is registered, the page is there with a slash at the end and without.
func TestSlash(t *testing.T) {
	c, p := program(t)
	mux := http.NewServeMux()
	mux.Handle("/debug/eagergc/", debug.Handler(c, p))
	if w := get(mux, "GET", "http://localhost/debug/eagergc/", here); w.Code != http.StatusOK {
		t.Errorf("with a slash: %d", w.Code)
	}
	if w := get(mux, "GET", "http://localhost/debug/eagergc", here); w.Code/100 != 3 || w.Header().Get("Location") != "/debug/eagergc/" {
		t.Errorf("without: %d, %v", w.Code, w.Header())
	}
}

// A proxy on this machine that rewrites Host is told by what it adds.
func TestNoProxyMayRead(t *testing.T) {
	c, p := program(t)
	h := debug.Handler(c, p)
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "Via"} {
		r := httptest.NewRequest("GET", "http://localhost/debug/eagergc", nil)
		r.RemoteAddr = here
		r.Header.Set(name, "203.0.113.7")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", name, w.Code)
		}
	}
}

func TestUnguardedAnswersAnyClientButOnlyReads(t *testing.T) {
	c, p := program(t)
	h := debug.Unguarded(c, p)
	for _, tc := range []struct {
		method, target, remote string
		want                   int
	}{
		{"GET", "http://app.example/debug/eagergc", "10.0.0.1:99", 200},
		{"GET", "http://app.example/debug/eagergc?format=json", "[2001:db8::1]:99", 200},
		{"GET", "http://localhost/debug/eagergc", here, 200},
		{"POST", "http://app.example/debug/eagergc", "10.0.0.1:99", 405},
	} {
		if w := get(h, tc.method, tc.target, tc.remote); w.Code != tc.want {
			t.Errorf("%s %s from %s: %d, want %d", tc.method, tc.target, tc.remote, w.Code, tc.want)
		}
	}
}

// An app whose clients have to sign in anyway serves the page to those who have.
func ExampleUnguarded() {
	c, err := gc.New(gc.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	page := debug.Unguarded(c)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "operator" || subtle.ConstantTimeCompare([]byte(password), []byte("secret")) != 1 {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	})

	request := httptest.NewRequest("GET", "https://app.example/debug/eagergc", nil)
	for range 2 {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		fmt.Println(answer.Code)
		request.SetBasicAuth("operator", "secret")
	}
	// Output:
	// 401
	// 200
}

func TestWhatPoliciesAndReportsSayIsEscaped(t *testing.T) {
	c, _ := program(t)
	w := get(debug.Handler(c, bad{}), "GET", "http://localhost/", here)
	if body := w.Body.String(); strings.Contains(body, "<b>oops") || !strings.Contains(body, "&lt;b&gt;oops") {
		t.Error("report is not escaped")
	}
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
}

type bad struct{}

func (bad) Report(io.Writer) error {
	return fmt.Errorf("<b>oops</b>")
}

// BenchmarkUnderLoad is an allocation and its Free on two goroutines, with
// nobody looking and with a page load a second, which is what an open page does.
func BenchmarkUnderLoad(b *testing.B) {
	for _, looking := range []bool{false, true} {
		b.Run(fmt.Sprintf("looking=%v", looking), func(b *testing.B) {
			c, p := program(b)
			h := debug.Handler(c, p)
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for looking {
					get(h, "GET", "http://localhost/", here)
					select {
					case <-stop:
						return
					case <-time.After(time.Second):
					}
				}
			}()
			b.SetParallelism(max(1, 2/runtime.GOMAXPROCS(0)))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					a, err := pool.NewArray[byte](p, 4096, 0)
					if err != nil {
						b.Error(err)
						return
					}
					a.Free()
				}
			})
			b.StopTimer()
			close(stop)
			<-done
		})
	}
}

// BenchmarkPairs measures what BenchmarkUnderLoad does where other work on the
// machine is louder: two goroutines allocate and free all the time, in pairs of
// neighbouring windows, of which one begins with a load of the page. It reports
// the median over the pairs of how much fewer allocations that window had, and
// the 95 % interval of the median. -benchtime 30x is 30 pairs.
func BenchmarkPairs(b *testing.B) {
	const second, often = time.Second, 100 * time.Millisecond
	for _, bm := range []struct {
		every   time.Duration
		looking bool // false shows what the method sees where there is nothing
	}{{second, false}, {second, true}, {often, false}, {often, true}} {
		b.Run(fmt.Sprintf("every=%v/looking=%v", bm.every, bm.looking), func(b *testing.B) {
			c, p := program(b)
			h := debug.Handler(c, p)
			var counts [2]struct {
				atomic.Int64
				_ [120]byte
			}
			var stop atomic.Bool
			var busy sync.WaitGroup
			for i := range counts {
				busy.Go(func() {
					for !stop.Load() {
						a, err := pool.NewArray[byte](p, 4096, 0)
						if err != nil {
							b.Error(err)
							return
						}
						a.Free()
						counts[i].Add(1)
					}
				})
			}
			window := func(look bool) float64 {
				begin, before := time.Now(), counts[0].Load()+counts[1].Load()
				if look {
					get(h, "GET", "http://localhost/", here)
				}
				time.Sleep(time.Until(begin.Add(bm.every)))
				n := counts[0].Load() + counts[1].Load() - before
				return float64(n) / time.Since(begin).Seconds()
			}
			window(false)
			var slower []float64
			for i := 0; b.Loop(); i++ {
				first := window(bm.looking && i%2 == 0)
				second := window(bm.looking && i%2 == 1)
				if i%2 == 1 {
					first, second = second, first
				}
				slower = append(slower, 100*(1-first/second))
			}
			stop.Store(true)
			busy.Wait()
			slices.Sort(slower)
			n := float64(len(slower))
			rank := func(z float64) float64 { return slower[max(0, min(len(slower)-1, int(n/2+z*math.Sqrt(n)/2)))] }
			b.ReportMetric(rank(0), "slower-%")
			b.ReportMetric(rank(-1.96), "slower-low-%")
			b.ReportMetric(rank(1.96), "slower-high-%")
		})
	}
}

// BenchmarkPage is one load of the page: an open one asks for the JSON once a
// second.
func BenchmarkPage(b *testing.B) {
	c, p := program(b)
	h := debug.Handler(c, p)
	for _, target := range []string{"http://localhost/", "http://localhost/?format=json"} {
		b.Run("of="+target[len("http://localhost/"):], func(b *testing.B) {
			for b.Loop() {
				get(h, "GET", target, here)
			}
		})
	}
}

func TestDiagnose(t *testing.T) {
	c, p := program(t)
	h := debug.Handler(c, p)
	w := get(h, "GET", "http://localhost:8080/debug/eagergc?diagnose=0s", here)
	if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, "Next: ") || !strings.Contains(text, "objects in the Go heap") {
		t.Errorf("%d %s", w.Code, text)
	}
	for _, bad := range []string{"soon", "-1s", "2m"} {
		if w := get(h, "GET", "http://localhost:8080/debug/eagergc?diagnose="+bad, here); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "want a time") {
			t.Errorf("diagnose=%s: %d %s", bad, w.Code, w.Body)
		}
	}
}

// The download is a recording that validates and replays; its objects are what the pool
// holds. The other policies' figures are those that the simulator gives for it.
func TestDownloadAndWhatIf(t *testing.T) {
	c, p, last := recorded(t)
	h := debug.Handler(c, p, last)
	w := get(h, "GET", "http://localhost/debug/eagergc/?recording", here)
	if w.Code != http.StatusOK || w.Header().Get("Content-Disposition") != `attachment; filename="last.arrows"` {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	tr, err := arrowfile.Read(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Validate(); err != nil {
		t.Error(err)
	}
	load, err := sim.Compile(tr, sim.SpaceOf(tr))
	if err != nil {
		t.Fatal(err)
	}
	cycles := 0
	for _, e := range tr.Events {
		if e.Kind == trace.Cycle {
			cycles++
		}
	}
	if load.Allocs < 200 || cycles == 0 || tr.Start.IsZero() || time.Since(tr.Start) > time.Hour {
		t.Errorf("%d allocations, %d cycles, since %v", load.Allocs, cycles, tr.Start)
	}
	answer, err := last.WhatIf(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Limit != 64<<20 || answer.Assumed || len(answer.Replays) != 5 || answer.Cycles < cycles {
		t.Errorf("%+v", answer)
	}
	for i, r := range answer.Replays {
		again := sim.Run(load, gc.MustParse(r.Policy).New(), sim.Config{Limit: answer.Limit, Cost: sim.Fixed(answer.Cycle), Ladder: sim.Ladder{Factor: 2}})
		if r.InUse != (r.Policy == "cudajl") || again.Collections != r.Collections || again.PeakLive != r.PeakLive || i > 0 && r.Objective() < answer.Replays[i-1].Objective() {
			t.Errorf("%+v, and from the download %+v", r, again)
		}
	}
	text := get(h, "GET", "http://localhost/debug/eagergc/?whatif", here)
	for _, want := range []string{"loses least", "cudajl (in use)", "64.00 MiB", "Really there were"} {
		if !strings.Contains(text.Body.String(), want) {
			t.Errorf("%q is missing in %d %s", want, text.Code, text.Body)
		}
	}
	for _, target := range []string{"?recording", "?whatif"} {
		if w := get(h, "GET", "http://localhost/debug/eagergc/"+target, "10.0.0.1:99"); w.Code != http.StatusForbidden {
			t.Errorf("%s from elsewhere: %d", target, w.Code)
		}
		if w := get(debug.Handler(c, p), "GET", "http://localhost/debug/eagergc/"+target, here); !strings.Contains(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s without a recorder: %v", target, w.Header())
		}
	}
}

func TestWhatIfOfNothing(t *testing.T) {
	c, err := gc.New(gc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	last := flight.New(trace.WindowConfig{})
	defer last.Close()
	w := get(debug.Handler(c, last), "GET", "http://localhost/?whatif", here)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "nothing to replay yet") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHealth(t *testing.T) {
	health := func(c *gc.Collector) debug.Health {
		var s debug.Status
		if err := json.Unmarshal(get(debug.Handler(c), "GET", "http://localhost/?format=json", here).Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		return s.Health
	}
	newOne := func(cfg gc.Config) *gc.Collector {
		c, err := gc.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	good := newOne(gc.Config{Limit: 1000, Policy: gc.MustParse("never").New(), Caps: gc.Caps{Cycles: 1}}) // a cycle would take much of a life so short
	good.Account(300)
	if h := health(good); h.Level != "good" || !strings.Contains(h.Text, "300 B live of 1000 B (30 %)") {
		t.Errorf("%+v", h)
	}
	full := newOne(gc.Config{Limit: 1000, Policy: gc.MustParse("never").New(), Caps: gc.Caps{Cycles: 1}})
	full.Account(999)
	if h := health(full); h.Level != "watch" || !strings.Contains(h.Text, "is full") {
		t.Errorf("%+v", h)
	}
	over := newOne(gc.Config{Limit: 1000, Policy: gc.MustParse("never").New()})
	over.Account(5000)
	over.Collect(gc.TriggerExplicit)
	if h := health(over); h.Level != "bad" || !strings.Contains(h.Text, "More is reachable") {
		t.Errorf("%+v", h)
	}
	forced := newOne(gc.Config{Policy: gc.MustParse("never").New()})
	p, err := pool.New(pool.Config{Collector: forced, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 8 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 20 {
		if _, err := pool.NewArray[byte](p, 1<<20, 0); err != nil {
			t.Fatal(err)
		}
	}
	if h := health(forced); h.Level != "watch" || !strings.Contains(h.Text, "forced by allocations that did not fit") {
		t.Errorf("%+v", h)
	}
}
