package pool_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// TestMain fails if the tests leave goroutines behind. The fuzzer itself leaves one, which waits for signals.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	fuzzed := flag.Lookup("test.fuzz").Value.String() != ""
	for end := time.Now().Add(time.Minute); code == 0 && !fuzzed && runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			fmt.Fprintf(os.Stderr, "%d goroutines before the tests, %d after:\n", before, runtime.NumGoroutine())
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			code = 1
		}
	}
	os.Exit(code)
}

// waitFor polls cond: what a cycle found dead is given back by other goroutines.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: %s is not so", what)
		}
	}
}

// maker returns pools of one kind under the limits of the suite.
func maker(cfg pool.Config) pooltest.Maker {
	return func(t testing.TB, limits pressure.Limits) *pool.Pool {
		t.Helper()
		if cfg.Direct && limits.Soft != (pressure.Limit{}) {
			t.Skip("nothing is cached")
		}
		c := cfg
		c.Limits = limits
		c.Warn = pooltest.Warn(t)
		p, err := pool.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

func TestHost(t *testing.T)   { pooltest.Run(t, maker(pool.Config{})) }
func TestDirect(t *testing.T) { pooltest.Run(t, maker(pool.Config{Direct: true})) }
func TestSites(t *testing.T)  { pooltest.Run(t, maker(pool.Config{Sites: 1})) }
func TestPoison(t *testing.T) { pooltest.Run(t, maker(pool.Config{Poison: true})) }
