package pprof_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace/formats/poolpprof"
)

func newPool(t *testing.T, rate int64) *pool.Pool {
	t.Helper()
	p, err := pool.New(pool.Config{Sites: rate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

//go:noinline
func weights(p *pool.Pool) array.Array[float32] {
	a, err := array.New[float32](p, 3<<18)
	if err != nil {
		panic(err)
	}
	return a
}

//go:noinline
func activations(p *pool.Pool) array.Array[byte] {
	a, err := array.New[byte](p, 1<<20)
	if err != nil {
		panic(err)
	}
	return a
}

// forward holds 3 MiB of weights and 1 MiB of activations, and has freed 1 MiB.
func forward(p *pool.Pool) (a array.Array[float32], b array.Array[byte]) {
	a, b = weights(p), activations(p)
	activations(p).Free()
	return a, b
}

func TestWrite(t *testing.T) {
	p := newPool(t, 1)
	a, b := forward(p)
	defer a.Free()
	defer b.Free()
	var out bytes.Buffer
	if err := pprof.Write(&out, newPool(t, 0), p); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.CheckValid(); err != nil {
		t.Fatal(err)
	}
	var sum [4]int64
	for _, s := range got.Sample {
		for i, v := range s.Value {
			sum[i] += v
		}
		if s.Label["space"][0] != "host" {
			t.Errorf("%v", s.Label)
		}
	}
	if want := [4]int64{3, 5 << 20, 2, 4 << 20}; sum != want || got.Period != 1 || len(got.Comments) != 1 {
		t.Errorf("sums %v, want %v; period %d, comments %q", sum, want, got.Period, got.Comments)
	}
}

// go tool pprof itself says who holds the memory of a running program.
func TestTool(t *testing.T) {
	p := newPool(t, 1)
	a, b := forward(p)
	defer a.Free()
	defer b.Free()
	server := httptest.NewServer(pprof.Handler(p))
	defer server.Close()
	for _, c := range []struct{ option, want string }{
		{"-sample_index=inuse_space", `(?s)Type: inuse_space.*3MB 75.00% 75.00% +3MB 75.00%  \S+pprof_test.weights.*1MB 25.00%   100% +1MB 25.00%  \S+pprof_test.activations.*4MB   100%  \S+pprof_test.forward`},
		{"-sample_index=alloc_objects", `2 66.67% 66.67% +2 66.67%  \S+pprof_test.activations`},
	} {
		cmd := exec.Command("go", "tool", "pprof", "-top", c.option, server.URL)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir(), "NO_PROXY=127.0.0.1")
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("needs go tool pprof: %v: %s", err, text)
		}
		if !regexp.MustCompile(c.want).Match(text) {
			t.Errorf("go tool pprof says:\n%s", text)
		}
	}
}

func TestHandler(t *testing.T) {
	for _, c := range []struct {
		pool   *pool.Pool
		method string
		remote string
		want   int
	}{
		{newPool(t, 1), "GET", "127.0.0.1:9", http.StatusOK},
		{newPool(t, 0), "GET", "127.0.0.1:9", http.StatusNotFound},
		{newPool(t, 1), "POST", "127.0.0.1:9", http.StatusMethodNotAllowed},
		{newPool(t, 1), "GET", "192.0.2.1:9", http.StatusForbidden},
	} {
		r := httptest.NewRequest(c.method, "http://localhost/debug/eagergc/memory", nil)
		r.RemoteAddr = c.remote
		w := httptest.NewRecorder()
		pprof.Handler(c.pool).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s from %s: %d %s, want %d", c.method, c.remote, w.Code, w.Body, c.want)
		}
	}
	if err := pprof.Write(new(bytes.Buffer), newPool(t, 0)); !errors.Is(err, pprof.ErrNoSites) {
		t.Errorf("%v", err)
	}
}

func TestRateFromTheLimit(t *testing.T) {
	for _, c := range []struct{ limit, want int64 }{{0, pool.DefaultSites}, {1 << 20, 64 << 10}, {4 << 30, 8 << 20}, {80 << 30, pool.DefaultSites}} {
		p, err := pool.New(pool.Config{Sites: pool.SitesByLimit, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: c.limit}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.SiteRate(); got != c.want {
			t.Errorf("limit %d: a sample each %d bytes, want %d", c.limit, got, c.want)
		}
		p.Close()
	}
}
