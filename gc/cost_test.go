package gc

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
)

// TestSlowdownIsWhatGoroutinesWaitFor: the processors of a cycle are lost where goroutines
// wait for them, and nothing is where none does. The policy is told of it.
func TestSlowdownIsWhatGoroutinesWaitFor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, c := range []struct {
		seen marking
		want float64
	}{
		{marking{}, 0},                            // too short to be seen
		{marking{polls: 10}, 0},                   // idle processors
		{marking{polls: 10, waiting: 10}, 1. / 3}, // one of four is taken
		{marking{polls: 10, waiting: 5}, 1. / 7},  // and half of the time missed
	} {
		told := -1.0
		collector, e, g := staged(t, &scripted{decide: func(p policy.Point) policy.Decision {
			told = p.Slowdown
			return policy.Decision{}
		}})
		g.gate.Allocating(100, 1)
		if told != 0 {
			t.Errorf("told %.2f before the first cycle", told)
		}
		e.each, e.seen = 20*ms, c.seen
		go func() {
			end := <-e.marks
			e.pass(20 * ms) // one processor for all of it
			end <- 0
		}()
		collector.Collect(policy.TriggerExplicit)
		g.gate.Allocating(100, 1)
		if math.Abs(told-c.want) > 1e-9 || collector.Stats().Slowdown != told {
			t.Errorf("%+v: told %.3f, want %.3f", c.seen, told, c.want)
		}
	}
}

// TestACollectorSeesWhetherProcessorsAreBusy runs cycles of Go's runtime beside goroutines that want
// all processors, and beside none.
func TestACollectorSeesWhetherProcessorsAreBusy(t *testing.T) {
	if testing.Short() {
		t.Skip("cycles beside busy processors take long")
	}
	var heap []*[64]*int
	for range 1 << 14 {
		heap = append(heap, new([64]*int)) // 8 MiB to mark
	}
	slowdown := func(busy int) float64 {
		var quit atomic.Bool
		defer quit.Store(true)
		for range busy {
			go func() {
				for !quit.Load() {
				}
			}()
		}
		c, err := New(Config{Policy: policy.Spec{}.New()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 8 {
			c.Collect(policy.TriggerExplicit)
		}
		return c.Stats().Slowdown
	}
	for range 8 {
		idle := slowdown(0)
		if idle > 0.1 {
			continue // as where other processes keep all processors busy: goroutines wait in any case
		}
		busy := slowdown(2 * runtime.GOMAXPROCS(0))
		t.Logf("%.2f with idle processors, %.2f with busy ones", idle, busy)
		if busy > 0.02 && busy <= 1 && idle < busy/2 {
			runtime.KeepAlive(heap)
			return
		}
	}
	var load float64
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Sscan(string(text), &load)
	}
	if load > float64(runtime.NumCPU()) {
		t.Skipf("other processes keep the processors busy: load %.1f", load)
	}
	t.Error("it never sees the difference")
}
