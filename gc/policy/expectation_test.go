package policy

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// TestExpectationAgainstAllItHasSeen: the doc comments, computed anew after each cycle from all cycles that were measured. Each measured factor
// counts half, the one before it a quarter, and so on; the processor time has the median of the last five.
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

			m := Measured{Length: time.Duration(r.Int64N(1e8)), Work: time.Duration(r.Int64N(4e8)), Processors: n, Scan: scan, Tracked: tracked}
			e.Learn(m)
			all = append(all, m)

			length = 0
			var works []float64
			for _, m := range all {
				f := float64(m.Length) / prior(700*time.Microsecond, 850*time.Microsecond, m.Scan, m.Tracked)
				length = (cmp.Or(length, f) + f) / 2
				works = append(works, float64(m.Work/time.Duration(n))/prior(100*time.Microsecond, 600*time.Microsecond, m.Scan, m.Tracked))
			}
			works = works[max(0, len(works)-5):]
			slices.Sort(works)
			length, work = cmp.Or(length, 1), cmp.Or(works[(len(works)-1)/2], 1) // none is not known
		}
	})
}
