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

// MMU returns, for each window, the minimum mutator utilization: the least
// share of any window of that length, within the elapsed time of the run,
// that the program was not held (Cheng and Blelloch, PLDI 2001). Windows
// longer than the run count as the run.
func (l *Log) MMU(elapsed time.Duration, windows []time.Duration) []float64 {
	mmu := make([]float64, len(windows))
	for k, w := range windows {
		w = min(w, elapsed)
		if w <= 0 {
			mmu[k] = 1
			continue
		}
		// The worst window starts with a pause or ends with one.
		var most, held time.Duration
		byEnd, byStart := heldUntil{pauses: l.Pauses}, heldUntil{pauses: l.Pauses}
		for _, p := range l.Pauses {
			if p.At+w <= elapsed {
				most = max(most, byEnd.of(p.At+w)-held)
			}
			held += p.Length
			if end := p.At + p.Length; end >= w {
				most = max(most, held-byStart.of(end-w))
			}
		}
		before := func(t time.Duration) time.Duration { return (&heldUntil{pauses: l.Pauses}).of(t) }
		most = max(most, before(w), before(elapsed)-before(elapsed-w))
		mmu[k] = 1 - float64(most)/float64(w)
	}
	return mmu
}

// A heldUntil tells for how long the program was held before a time, for times that
// do not go back.
type heldUntil struct {
	pauses []Pause       // that start later, and the last one that does not
	held   time.Duration // by those before
}

func (h *heldUntil) of(t time.Duration) time.Duration {
	for len(h.pauses) > 1 && h.pauses[1].At < t {
		h.held += h.pauses[0].Length
		h.pauses = h.pauses[1:]
	}
	if len(h.pauses) == 0 || h.pauses[0].At >= t {
		return h.held
	}
	return h.held + min(h.pauses[0].Length, t-h.pauses[0].At)
}

// Windows returns n window lengths for an MMU curve, spaced evenly in their
// logarithm from least to most.
func Windows(least, most time.Duration, n int) []time.Duration {
	ws := make([]time.Duration, n)
	for i := range ws {
		f := float64(i) / float64(max(1, n-1))
		ws[i] = time.Duration(math.Round(float64(least) * math.Pow(float64(most)/float64(least), f)))
	}
	return ws
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
