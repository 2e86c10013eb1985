package gc

import (
	"runtime"
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
