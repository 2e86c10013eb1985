package gc

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// TestMarkKnowsHowLongItSwept: until the last poll at which the world had not yet been
// stopped for the mark. Polls come when the machine has time for them, so they are made up here.
func TestMarkKnowsHowLongItSwept(t *testing.T) {
	type poll struct {
		at       time.Duration
		stops    uint64
		runnable int
	}
	for _, c := range []struct {
		name  string
		polls []poll
		want  marking
	}{
		{"nobody polled", nil, marking{}},
		{"it swept all the time", []poll{{1 * ms, 6, 3}, {2 * ms, 6, 3}}, marking{}},
		{"it marked at once", []poll{{1 * ms, 7, 3}, {2 * ms, 7, 0}, {3 * ms, 7, 2}}, marking{polls: 3, waiting: 2}},
		{"it swept, then marked", []poll{{1 * ms, 6, 9}, {4 * ms, 6, 9}, {5 * ms, 7, 2}, {9 * ms, 7, 1}}, marking{swept: 4 * ms, polls: 2, waiting: 1}},
		{"an older cycle's mark ended first", []poll{{1 * ms, 7, 2}, {3 * ms, 7, 2}, {5 * ms, 8, 0}, {8 * ms, 8, 0}}, marking{swept: 3 * ms, polls: 4, waiting: 2}},
	} {
		seen := markPoll{cores: 4, first: 6, stops: 6}
		for _, l := range c.polls {
			seen.add(progress{stops: l.stops, runnable: l.runnable}, l.at)
		}
		if seen.marking != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, seen.marking, c.want)
		}
	}
}

// TestMarkOfTheRuntime: a cycle stops the world to begin its mark and to end it, and no
// sweep before it takes longer than all.
func TestMarkOfTheRuntime(t *testing.T) {
	r := newGoRuntime()
	defer r.close()
	var heap [][]byte
	for range 1 << 13 {
		heap = append(heap, make([]byte, 8<<10)) // a span each: little to mark, much to sweep
	}
	for range 10 {
		var reader progressReader
		before, began := reader.read(), time.Now()
		m := r.mark()
		if took := time.Since(began); m.swept < 0 || m.swept > took {
			t.Errorf("it swept for %v of %v", m.swept, took)
		}
		if now := reader.read(); now.cycles == before.cycles {
			t.Error("no cycle more")
		}
		// A stop is counted when the world runs again.
		waitFor(t, time.Minute, func() bool { return reader.read().stops >= before.stops+2 })
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

// TestDisplaced: a cycle takes a quarter of the processors, rounded up, and whoever polls takes one.
func TestDisplaced(t *testing.T) {
	for _, c := range [][3]int{{0, 1, 0}, {1, 1, 1}, {9, 1, 1}, {0, 2, 0}, {1, 2, 0}, {2, 2, 1}, {0, 4, 0}, {2, 4, 1}, {9, 4, 1}, {2, 5, 1}, {9, 5, 2}, {3, 8, 2}, {9, 8, 2}, {9, 9, 3}} {
		if got := displaced(c[0], c[1]); got != c[2] {
			t.Errorf("of %d goroutines on %d processors: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestTheRuntimeIsReadAsItIs: its cycles, its heap, the processor time of cycles, and what has run since.
func TestTheRuntimeIsReadAsItIs(t *testing.T) {
	r := newGoRuntime()
	defer r.close()
	got := processTime()
	first, before, heap := r.processor(), r.read(), tree(15)
	for range 20 {
		runtime.GC()
	}
	own := r.processor() - first
	if own <= 0 || processTime() > 0 && own > processTime()-got {
		t.Errorf("20 cycles took %v of the processor time, and the process %v", own, processTime()-got)
	}
	if again := r.processor() - first; again < own {
		t.Errorf("the processor time of cycles falls from %v to %v", own, again)
	}
	if after := r.read(); after.cycles < before.cycles+20 || after.cycles > before.cycles+1000 || after.scan < 1<<20 || after.scan > 1<<40 {
		t.Errorf("read %+v, and then %+v", before, after)
	}
	r.calls.Store(3)
	if r.returns.Store(2); r.marked() != 3 || r.swept() != 2 {
		t.Errorf("%d marked, %d swept", r.marked(), r.swept())
	}
	waitFor(t, 20*time.Second, func() bool { r.calls.Store(3); r.close(); r.returns.Store(2); return r.mark().polls > 0 }) // it is seen while it marks
	if r.close(); r.marked() != 4 || r.swept() != 3 {
		t.Errorf("%d marked, %d swept after one more", r.marked(), r.swept())
	}
	runtime.KeepAlive(heap)
	if live := goHeap(); live < 4<<20 || live > int64(r.read().scan)+1<<40 {
		t.Errorf("a heap of %d bytes", live)
	}
}

// TestSpareIsAProcessorThatNobodyHas, where the runtime says so.
func TestSpareIsAProcessorThatNobodyHas(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := newGoRuntime()
	if r.spare() {
		t.Error("a processor is spare, and this goroutine has the only one")
	}
	s := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}}
	if metrics.Read(s); s[0].Value.Kind() == metrics.KindBad {
		return
	}
	runtime.GOMAXPROCS(16)
	waitFor(t, 20*time.Second, r.spare)
}

// TestPending: what waits, and what has run but for our own.
func TestPending(t *testing.T) {
	for _, c := range []struct {
		p     pending
		waits bool
	}{{pending{}, false}, {pending{1, 1, 2, 2, 0}, false}, {pending{2, 1, 2, 2, 0}, true}, {pending{1, 1, 3, 2, 0}, true}, {pending{1, 2, 2, 2, 0}, false}} {
		if c.p.waiting() != c.waits {
			t.Errorf("%+v: waits %v", c.p, c.p.waiting())
		}
	}
	before := readPending()
	done := make(chan struct{}, 2)
	runtime.SetFinalizer(new(bound), func(*bound) { done <- struct{}{} })
	runtime.AddCleanup(new(bound), func(int) { done <- struct{}{} }, 0)
	for range 2 {
		waitFor(t, 20*time.Second, func() bool {
			runtime.GC()
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
	}
	countsFinalizers(t)
	waitFor(t, 20*time.Second, func() bool { p := readPending(); return p.finalized > before.finalized && p.cleaned > before.cleaned })
	if p := readPending(); p.finalizers < p.finalized || p.cleanups < p.cleaned || p.cycles <= before.cycles {
		t.Errorf("%+v, and then %+v", before, p)
	}
}
