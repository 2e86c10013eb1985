package chart

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A Run is one logged run. All runs of a chart have the same workload and configuration.
type Run struct {
	Result sim.Result
	Log    *sim.Log
	Levels []sim.Level // from [sim.Workload.Series]; only memoryChart needs them
}

// timeShown returns the end of the time axis: that of the longest run that takes at most twice as
// long as the shortest.
func timeShown(runs []Run) (end time.Duration) {
	var shortest time.Duration
	for _, r := range runs {
		if shortest == 0 || r.Result.Elapsed < shortest {
			shortest = r.Result.Elapsed
		}
	}
	for _, r := range runs {
		if r.Result.Elapsed <= 2*shortest {
			end = max(end, r.Result.Elapsed)
		}
	}
	return end
}

// mmuWindows returns the windows of an MMU curve, evenly spaced on a logarithmic scale. They go
// from 1 ms to the longest run that a memory chart shows whole.
func mmuWindows(runs []Run) []time.Duration {
	const least = float64(time.Millisecond)
	ws, ratio := make([]time.Duration, 80), max(float64(timeShown(runs))/least, 2)
	for i := range ws {
		ws[i] = time.Duration(math.Round(least * math.Pow(ratio, float64(i)/float64(len(ws)-1))))
	}
	return ws
}

// A quantile is a point of a line in a chart of pauses.
type quantile struct {
	nines float64 // 0 at the shortest pause, 1 at 90%, 2 at 99%
	pause time.Duration
}

// apart is the least distance of two steps: a thousandth of an axis to 99%.
const apart = 0.002

// quantiles returns the steps of the percentile line of a run's exposed pauses, and its end at
// the longest. It joins steps that are too close for a picture. It is empty without pauses.
func quantiles(l *sim.Log) []quantile {
	lengths := l.Lengths()
	var out []quantile
	n := float64(len(lengths))
	for i, d := range lengths {
		nines := -math.Log10(1 - float64(i)/n)
		switch {
		case i > 0 && d == lengths[i-1]:
		case i > 0 && nines-out[len(out)-1].nines < apart:
			out[len(out)-1].pause = d
		default:
			out = append(out, quantile{nines, d})
		}
	}
	if len(lengths) > 0 {
		out = append(out, quantile{math.Log10(n) + 0.15, lengths[len(lengths)-1]})
	}
	return out
}

// An overhead is the lower-bound overhead of a policy at one limit (Cai, Blackburn, Bond and
// Maas, ISPASS 2022). It is the total cost over the least possible cost: 1 if the collector
// costs nothing.
type overhead struct {
	Policy    string
	Factor    float64 // of the limit
	Wall      float64 // of elapsed time
	Processor float64 // of processor time
}

// frontOf returns the indices of the results on the Pareto front of collector time and exposed
// pause, by increasing collector time. Of equal results it has the first. It leaves out results
// with failed allocations, and policies that no program could run.
func frontOf(results []sim.Result) (front []int) {
	var order []int
	for i, r := range results {
		if r.FailedAllocs == 0 && !experiment.Foresees(r.Policy) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &results[a], &results[b]
		return cmp.Or(cmp.Compare(x.GCBusy, y.GCBusy), cmp.Compare(x.ExposedPause, y.ExposedPause))
	})
	for _, i := range order {
		if len(front) == 0 || results[i].ExposedPause < results[front[len(front)-1]].ExposedPause {
			front = append(front, i)
		}
	}
	return front
}
