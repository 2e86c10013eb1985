package chart

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A Run is one logged run. All runs of a chart are of the same workload and
// config.
type Run struct {
	Result sim.Result
	Log    *sim.Log
	Levels []sim.Level // from [sim.Workload.Series]; only memoryChart needs them
}

// between is the part of a run from one moment to another, as a run whose time begins there.
func (r Run) between(from, to time.Duration) Run {
	part := Run{Result: r.Result, Log: new(sim.Log)}
	part.Result.Elapsed = min(to, r.Result.Elapsed) - from
	for _, l := range r.Levels {
		if l.At <= to {
			l.At = max(0, l.At-from)
			part.Levels = append(part.Levels, l)
		}
	}
	for _, c := range r.Log.Cycles {
		if c.Start >= from && c.Start <= to {
			c.Start -= from
			part.Log.Cycles = append(part.Log.Cycles, c)
		}
	}
	return part
}

// timeShown is where the time axis of runs ends.
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

// mmuWindows are the windows of an MMU curve: from 1 ms to the longest run that
// a memory chart shows whole, spaced evenly in their logarithm.
func mmuWindows(runs []Run) []time.Duration {
	const least = float64(time.Millisecond)
	ws, ratio := make([]time.Duration, 80), max(float64(timeShown(runs))/least, 2)
	for i := range ws {
		ws[i] = time.Duration(math.Round(least * math.Pow(ratio, float64(i)/float64(len(ws)-1))))
	}
	return ws
}

// A quantile is a point of a line of a chart of pauses. nines is 0 at the shortest pause,
// 1 at 90 %, 2 at 99 %.
type quantile struct {
	nines float64
	pause time.Duration
}

// apart is how far apart two steps are at least: a thousandth of an axis to 99 %.
const apart = 0.002

// quantiles returns where the percentile line of a run's exposed pauses steps
// up, and its end at the longest. Steps that no picture could show apart are one.
// It is empty if there was no pause.
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

// An overhead is the lower-bound overhead of a policy at one limit (Cai,
// Blackburn, Bond and Maas, ISPASS 2022): total cost over the least possible
// cost, 1 if the collector costs nothing.
type overhead struct {
	Policy    string
	Factor    float64 // of the limit
	Wall      float64 // of elapsed time
	Processor float64 // of processor time
}

// frontOf returns the indices of the results of the front that a chart of it draws, by
// increasing collector time. Results under which allocations failed are not of it.
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
