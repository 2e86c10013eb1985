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
		swept := r.mark()
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

// Goroutines that help to sweep start no cycles of their own, and there are none
// where the heap is small or the processors are few.
func TestHelpersStartNoCycles(t *testing.T) {
	if helpers(16, 0) != 0 || helpers(2, 1<<30) != 0 || helpers(16, 1<<28) != 4 || helpers(16, 1<<40) != 7 {
		t.Error(helpers(16, 0), helpers(2, 1<<30), helpers(16, 1<<28), helpers(16, 1<<40))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	type node struct {
		next *node
		_    [1 << 16]*node
	}
	var heap *node
	for range 256 { // 128 MiB with pointers
		heap = &node{next: heap}
	}
	r := newGoRuntime()
	r.mark()
	var look progressReader
	before := look.read()
	const marks = 20
	for range marks {
		r.mark()
	}
	r.close()
	if n := look.read().cycles - before.cycles; n < marks || n > marks*3/2 {
		t.Errorf("%d cycles for %d that were asked for", n, marks)
	}
	runtime.KeepAlive(heap)
}
