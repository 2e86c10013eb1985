package debug_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/debug"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
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
			close(stop)
			<-done
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
