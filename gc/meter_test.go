package gc

import (
	"runtime"
	"testing"
	"time"
)

// TestMeterFollowsWhatCyclesTake: the first cycle is believed, and each later
// one half.
func TestMeterFollowsWhatCyclesTake(t *testing.T) {
	m := newMeter()
	for i, c := range []struct{ took, want time.Duration }{{44, 44}, {84, 64}, {64, 64}, {0, 32}} {
		m.learn(c.took*ms, 0)
		if got := m.cost(0) - c.want*ms; got < -ms/10 || got > ms/10 {
			t.Errorf("cycle %d of %v: %v from %v", i, c.took*ms, got, c.want*ms)
		}
	}
}

// TestMarkKnowsHowLongItSwept: of cycles that begin at once after another, some
// notice that they sweep first; of those that begin after the sweep, some
// notice that they need not. Single ones may be off on a busy machine.
func TestMarkKnowsHowLongItSwept(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor: nobody looks while it sweeps")
	}
	c := newCollector(t, Config{Policy: new(Never)})
	var heap [][]byte
	for range 1 << 13 {
		heap = append(heap, make([]byte, 8<<10)) // a span each: little to mark, much to sweep
	}
	share := func() float64 {
		began := time.Now()
		swept := c.mark()
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
