package chart

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A Run is one logged run. All runs of a chart have the same workload and configuration.
type Run struct {
	Result sim.Result
	Log    *sim.Log
	Levels []sim.Level // from [sim.Workload.Series]; only memoryChart needs them

	window bool          // it is a part of a run
	from   time.Duration // where the part begins
}

// between returns the part of a run from one moment to another.
func (r Run) between(from, to time.Duration) Run {
	part := Run{Result: r.Result, Log: new(sim.Log), window: true, from: from}
	part.Result.Elapsed = max(from, min(to, r.Result.Elapsed))
	for _, l := range r.Levels {
		if l.At <= to {
			l.At = max(from, l.At)
			part.Levels = append(part.Levels, l)
		}
	}
	if n := len(part.Levels); n > 0 { // it holds until the end
		last := part.Levels[n-1]
		last.At = part.Result.Elapsed
		part.Levels = append(part.Levels, last)
	}
	for _, c := range r.Log.Cycles {
		if c.Start >= from && c.Start <= to {
			part.Log.Cycles = append(part.Log.Cycles, c)
		}
	}
	return part
}

// timeShown returns where the time axis of runs begins and ends. It ends with the longest run that
// takes at most twice as long as the shortest, and a window ends with the longest.
func timeShown(runs []Run) (start, end time.Duration) {
	var shortest time.Duration
	for _, r := range runs {
		if shortest == 0 || r.Result.Elapsed < shortest {
			shortest = r.Result.Elapsed
		}
	}
	for _, r := range runs {
		if r.window || r.Result.Elapsed <= 2*shortest {
			start, end = r.from, max(end, r.Result.Elapsed)
		}
	}
	return start, end
}

// mmuWindows returns the windows of an MMU curve, evenly spaced on a logarithmic scale. They go
// from 1 ms to the longest run that a memory chart shows whole.
func mmuWindows(runs []Run) []time.Duration {
	const least = float64(time.Millisecond)
	_, end := timeShown(runs)
	ws, ratio := make([]time.Duration, 80), max(float64(end)/least, 2)
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

// frontOf returns the indices of the results on the front, by increasing collector time. It
// leaves out results with failed allocations.
func frontOf(results []sim.Result) []int {
	var of []sim.Result
	var at []int
	for i, r := range results {
		if r.FailedAllocs == 0 && !experiment.Foresees(r.Policy) {
			of, at = append(of, r), append(at, i)
		}
	}
	front := experiment.Pareto(of, experiment.Busy, experiment.Exposed)
	for i, k := range front {
		front[i] = at[k]
	}
	return front
}
