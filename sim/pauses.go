package sim

import (
	"math"
	"slices"
	"time"
)

// Lengths returns the lengths of the exposed pauses of a run, the shortest first. The
// result is the caller's.
func (l *Log) Lengths() []time.Duration {
	lengths := make([]time.Duration, len(l.Pauses))
	for i, p := range l.Pauses {
		lengths[i] = p.Length
	}
	slices.Sort(lengths)
	return lengths
}

// Latencies returns the metered latency of each interval between two sync
// points (a step of the program, as its user sees it), sorted. If an interval
// began late because those before it were held, it counts from when it should
// have begun. That time comes from the starts, smoothed over a window, as DaCapo
// Chopin's LatencyReporter does it. A window of 0 gives simple latencies; a window
// as long as the run supposes that all intervals should start at equal distances.
func (w *Workload) Latencies(l *Log, window time.Duration) []time.Duration {
	type interval struct{ begin, end float64 }
	var all []interval
	delay, next := time.Duration(0), 0
	at := func(t int64) float64 {
		for ; next < len(l.Pauses) && int64(l.Pauses[next].Trace) <= t; next++ {
			delay += l.Pauses[next].Length
		}
		return float64(t) + float64(delay)
	}
	begin := at(0)
	for i := range w.points {
		if p := &w.points[i]; p.sync {
			end := at(p.time + p.arg)
			all = append(all, interval{begin, end})
			begin = end
		}
	}
	half := float64(window) / 2
	out := make([]time.Duration, len(all))
	a, b := 0, 0
	for i, x := range all {
		for a < len(all) && all[a].begin < x.begin-half {
			a++
		}
		for b < len(all)-1 && all[b].begin < x.begin+half {
			b++
		}
		start := x.begin
		if b > a {
			start = min(start, all[a].begin+float64(i-a)*(all[b].begin-all[a].begin)/float64(b-a))
		}
		out[i] = time.Duration(math.Round(x.end - start))
	}
	slices.Sort(out)
	return out
}
