package gc

import (
	"runtime"
	"testing"
	"time"
)

// TestMarkKnowsHowLongItSwept: of cycles that begin at once after another, some
// notice that they sweep first; of those that begin after the sweep, some
// notice that they need not. Single ones may be off on a busy machine.
func TestMarkKnowsHowLongItSwept(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor: nobody looks while it sweeps")
	}
	r := newGoRuntime()
	defer r.close()
	var heap [][]byte
	for range 1 << 13 {
		heap = append(heap, make([]byte, 8<<10)) // a span each: little to mark, much to sweep
	}
	share := func() float64 {
		began := time.Now()
		swept := r.mark().swept
		return float64(swept) / float64(time.Since(began))
	}
	most, least := 0.0, 1.0
	for range 20 {
		runtime.GC() // returns after its sweep
		least = min(least, share())
		most = max(most, share())
	}
	if most < 0.2 || most > 1 || least < 0 || least > 0.2 {
		t.Errorf("at best %.2f of a cycle is sweep after the sweep, and %.2f at once after another", least, most)
	}
	runtime.KeepAlive(heap)
}

// TestAForgottenEngineIsWatchedNoMore: its sentinel is not armed again, or each
// collector that a program ever had would cost every later cycle a cleanup.
func TestAForgottenEngineIsWatchedNoMore(t *testing.T) {
	before := sentinels.Load() // of other tests, which may go meanwhile
	for range 50 {
		newGoRuntime().watch(func() {})
	}
	waitFor(t, 20*time.Second, func() bool {
		runtime.GC()
		return sentinels.Load() <= before
	})
}
