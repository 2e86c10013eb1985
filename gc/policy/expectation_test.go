package policy

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// TestCostFollowsWhatCyclesTake: the first cycle is believed, and each later
// one half.
func TestCostFollowsWhatCyclesTake(t *testing.T) {
	m := costModel{base: 1}
	for i, c := range []struct{ took, want time.Duration }{{44, 44}, {84, 64}, {64, 64}, {0, 32}} {
		m.learn(c.took*ms, 0, 0)
		if got := m.cost(0, 0) - c.want*ms; got < -ms/10 || got > ms/10 {
			t.Errorf("cycle %d of %v: %v from %v", i, c.took*ms, got, c.want*ms)
		}
	}
}

// A cycle beside which the system had given the processors to others does not count.
func TestWorkIsTheMedian(t *testing.T) {
	m := workModel{costModel: costModel{base: 1}}
	for i, c := range []struct{ took, want time.Duration }{{40, 40}, {900, 40}, {50, 50}, {900, 50}, {60, 60}, {60, 60}, {900, 60}} {
		m.learn(c.took*ms, 0, 0)
		if got := m.cost(0, 0) - c.want*ms; got < -ms/10 || got > ms/10 {
			t.Errorf("cycle %d of %v: %v from %v", i, c.took*ms, got, c.want*ms)
		}
	}
}

// TestExpectationAgainstAllItHasSeen: the doc comments, computed anew after each cycle from all cycles that were measured. Each measured factor
// counts half, the one before it a quarter, and so on; the processor time has the median of the last five; the
// slowdown has sums in which each cycle counts three quarters of the next.
func TestExpectationAgainstAllItHasSeen(t *testing.T) {
	check(t, func(r *draw) {
		n := 1 + r.IntN(8)
		prior := func(base, perMiB time.Duration, scan uint64, tracked int) float64 {
			return float64(base) + float64(perMiB)/float64(n)*float64(scan)/miB + 30*float64(tracked)
		}
		close := func(what string, got time.Duration, want float64) {
			if diff := float64(got) - want; diff > 1e-6*want || diff < -1-1e-6*want {
				r.Fatalf("%d processors: %s %v, want %v", n, what, got, time.Duration(want))
			}
		}
		e := NewExpectation(n)
		length, work := 1., 1. // factors
		slow := 0.
		var all []Measured
		for range 12 {
			scan, tracked := r.Uint64N(1<<30), r.IntN(1<<20)
			if r.IntN(4) == 0 {
				scan, tracked = 0, 0
			}
			if len(all) == 0 {
				close("cost of nothing before the first cycle", e.Cost, 700e3)
				close("work of nothing before the first cycle", e.Work, 100e3)
			}
			e.See(scan, tracked)
			close("cost", e.Cost, length*prior(700*time.Microsecond, 850*time.Microsecond, scan, tracked))
			close("work", e.Work, work*prior(100*time.Microsecond, 600*time.Microsecond, scan, tracked))
			if d := e.Slowdown - slow; d > 1e-9 || d < -1e-9 {
				r.Fatalf("slowdown %v, want %v", e.Slowdown, slow)
			}

			m := Measured{
				Length: time.Duration(r.Int64N(1e8)), Work: time.Duration(r.Int64N(4e8)), Processors: n, Scan: scan, Tracked: tracked,
				Polls: r.IntN(9), Waiting: r.IntN(20),
			}
			switch r.IntN(12) {
			case 0:
				m.Polls = 0
			case 1:
				m.Work = 0
			case 2:
				m.Length = 0
			}
			e.Learn(m)
			all = append(all, m)

			length = 0
			var works []float64
			for _, m := range all {
				f := float64(m.Length) / prior(700*time.Microsecond, 850*time.Microsecond, m.Scan, m.Tracked)
				if length == 0 {
					length = f
				} else {
					length = (length + f) / 2
				}
				works = append(works, float64(m.Work/time.Duration(n))/prior(100*time.Microsecond, 600*time.Microsecond, m.Scan, m.Tracked))
			}
			works = works[max(0, len(works)-5):]
			slices.Sort(works)
			length, work = cmp.Or(length, 1), cmp.Or(works[(len(works)-1)/2], 1) // none is not known
			var polls, waiting, processor, clock float64
			weight := 1.
			for _, m := range slices.Backward(all) {
				if m.Polls > 0 && m.Work > 0 && m.Length > 0 {
					polls, waiting = polls+weight*float64(m.Polls), waiting+weight*float64(m.Waiting)
					processor, clock = processor+weight*float64(m.Work), clock+weight*float64(m.Length)
					weight *= 0.75
				}
			}
			if polls > 0 {
				lost := min(waiting/polls, processor/clock, float64(n)/2)
				slow = lost / (float64(n) - lost)
			}
		}
	})
}

// What is not known of a cycle is as long as it is expected to take, or took.
func TestWorkThatIsNotKnown(t *testing.T) {
	for _, c := range []struct{ work, cost, want time.Duration }{{0, 5, 5}, {3, 5, 3}, {9, 5, 9}, {-1, 5, 5}} {
		if at := (Point{Work: c.work, Cost: c.cost}); at.work() != c.want {
			t.Errorf("a point with work %d and cost %d: %d", c.work, c.cost, at.work())
		}
		if y := (Cycle{Work: c.work, Duration: c.cost}); y.work() != c.want {
			t.Errorf("a cycle with work %d that took %d: %d", c.work, c.cost, y.work())
		}
	}
}
