package experiment

import (
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/sim"
)

// AllLimits stands for every limit of a [Grid] that a workload can meet.
const AllLimits = -1

// Lost returns the time lost under a contender at one cost, as a share of the recorded time. It
// is the geometric mean over the workloads of 1 + objective / span, minus 1, at one limit or at
// [AllLimits]. It is NaN if a run is missing.
func (g *Grid) Lost(cost, contender, limit int) float64 {
	var ratios []float64
	for i, w := range g.Workloads {
		for l := range g.Limits {
			if limit != l && !(limit == AllLimits && g.Possible(i, l)) {
				continue
			}
			o := g.At(Cell{i, l, cost, contender})
			if o.Err != nil {
				return math.NaN()
			}
			ratios = append(ratios, 1+float64(o.Objective())/float64(max(1, w.Span)))
		}
	}
	return GeometricMean(ratios) - 1
}

// Possible reports whether a workload can meet a limit: its reachable bytes must fit.
func (g *Grid) Possible(workload, limit int) bool {
	w := g.Workloads[workload]
	return g.Limits[limit].Of(w) >= w.PeakReachable
}

// Worst returns the longest pause and the failed allocations of a contender at one cost.
func (g *Grid) Worst(cost, contender int) (longest time.Duration, failed int) {
	for i, o := range g.outcomes {
		if c := g.Cell(i); c.Cost == cost && c.Contender == contender {
			longest = max(longest, o.MaxPause)
			failed += o.FailedAllocs
		}
	}
	return longest, failed
}

// Failed returns the failed allocations at limits that can be met.
func (g *Grid) Failed(cost, contender int) (n int) {
	for i, o := range g.outcomes {
		if c := g.Cell(i); c.Cost == cost && c.Contender == contender && g.Possible(c.Workload, c.Limit) {
			n += o.FailedAllocs
		}
	}
	return n
}

// Ranks are indices of contenders; -1 if there is no such contender.
type Ranks struct {
	Best, Second int // policies under which the least time is lost
	Optimum      int // the best of the optima
	Never        int // the policy never
}

// Rank orders the contenders by the time lost at one cost. Policies with failed allocations come
// last.
func (g *Grid) Rank(cost int) Ranks {
	r := Ranks{-1, -1, -1, -1}
	for p, name := range g.Contenders {
		lost := g.Lost(cost, p, AllLimits)
		switch {
		case math.IsNaN(lost):
		case slices.Contains(sim.Optima(), name.String()):
			if r.Optimum < 0 || lost < g.Lost(cost, r.Optimum, AllLimits) {
				r.Optimum = p
			}
		case Foresees(name.String()):
		default:
			if name.String() == "never" {
				r.Never = p
			}
			switch {
			case r.Best < 0 || g.better(cost, p, r.Best):
				r.Best, r.Second = p, r.Best
			case r.Second < 0 || g.better(cost, p, r.Second):
				r.Second = p
			}
		}
	}
	return r
}

// better reports whether p ranks before q: first by failures, then by time lost.
func (g *Grid) better(cost, p, q int) bool {
	if a, b := g.Failed(cost, p) > 0, g.Failed(cost, q) > 0; a != b {
		return b
	}
	return g.Lost(cost, p, AllLimits) < g.Lost(cost, q, AllLimits)
}

// A Saving is the advantage of one policy over another at one cost.
type Saving struct {
	Time     time.Duration // objective less objective, over all runs that can meet their limit
	Recorded time.Duration // of these runs
	Runs     int
	// With is the smallest limit at which the one loses no more time than the other at Than, the
	// largest limit. Bytes is the difference of these limits, summed over all workloads; 0 if there
	// is no smaller limit.
	With, Than Limit
	Bytes      int64
}

// Saved compares contender p with q at one cost. No run of theirs may be missing.
func (g *Grid) Saved(cost, p, q int) Saving {
	var s Saving
	for i, w := range g.Workloads {
		for l := range g.Limits {
			if g.Possible(i, l) {
				s.Time += g.At(Cell{i, l, cost, q}).Objective() - g.At(Cell{i, l, cost, p}).Objective()
				s.Recorded += w.Span
				s.Runs++
			}
		}
	}
	total := func(l int) (sum int64) {
		for _, w := range g.Workloads {
			sum += g.Limits[l].Of(w)
		}
		return sum
	}
	largest := 0
	for l := range g.Limits {
		if total(l) > total(largest) {
			largest = l
		}
	}
	s.With, s.Than = g.Limits[largest], g.Limits[largest]
	for l := range g.Limits {
		if less := total(largest) - total(l); less > s.Bytes && g.Lost(cost, p, l) <= g.Lost(cost, q, largest) {
			s.With, s.Bytes = g.Limits[l], less
		}
	}
	return s
}
