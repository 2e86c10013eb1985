package fleet

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/sim"
)

// Lost is the time lost as compare prints it: the geometric mean of 1 + objective /
// recorded time over the runs, less 1. It is NaN if there are none.
func (t *Tally) Lost() float64 {
	if t.Runs == 0 {
		return math.NaN()
	}
	return math.Expm1(t.LogLost.Float() / 1e9 / float64(t.Runs))
}

// LostAt is the share of the recorded time that at least the share q of the jobs lose at
// most.
func (t *Tally) LostAt(q float64) float64 { return float64(t.LostPPM.Quantile(q)) / 1e6 }

// Index returns the index of a cell of the plan, by the indices of its settings.
func (p *Plan) Index(limit, cycle, policy int) int {
	return (limit*len(p.Cycles)+cycle)*len(p.Policies) + policy
}

// Best returns the policy of a group that loses the least time at a limit and cycle,
// without failed allocations if one does; -1 if none has run. Contenders that foresee are
// passed over.
func (p *Plan) Best(g *Group, limit, cycle int) int {
	best := -1
	less := func(a, b *Tally) bool {
		if x, y := a.Failing > 0, b.Failing > 0; x != y {
			return y
		}
		return a.Lost() < b.Lost()
	}
	for i, name := range p.Policies {
		t := &g.Cells[p.Index(limit, cycle, i)]
		if sim.Foresees(name) || t.Runs == 0 {
			continue
		}
		if best < 0 || less(t, &g.Cells[p.Index(limit, cycle, best)]) {
			best = i
		}
	}
	return best
}

// Advise returns the smallest limit, in the order of the plan, and the policy with which
// 95 of 100 jobs of a group lose at most a share of their time, and in no job an
// allocation fails or a limit cannot be met. It returns false if there is none.
func (p *Plan) Advise(g *Group, cycle int, most float64) (limit, policy int, ok bool) {
	for limit := range p.Limits {
		policy := p.Best(g, limit, cycle)
		if policy < 0 {
			continue
		}
		if t := &g.Cells[p.Index(limit, cycle, policy)]; t.Failing == 0 && t.Unmet == 0 && t.LostAt(0.95) <= most {
			return limit, policy, true
		}
	}
	return 0, 0, false
}

// Saved is how much less objective one cell has than another of the same limit, in the
// recorded time of all jobs.
func (g *Group) Saved(cell, than int) time.Duration {
	return time.Duration(g.Cells[than].Objective.Float() - g.Cells[cell].Objective.Float())
}

// Everything is the name of all jobs in [Answer.Results].
const Everything = "all jobs"

// Results returns the cells of each group, and of all jobs, in the form of replays, so
// that what reads replays reads a fleet. The trace of a result is its group. Counts and
// times are those of an hour that was recorded, counts rounded up; memory is the mean
// of the jobs; the longest pause is that of any job. So fleets of different sizes
// compare. A cell in which no job has run is left out.
func (a *Answer) Results() (all []sim.Result, cells []Cell) {
	add := func(name string, g *Group) {
		for i, c := range a.Plan.Cells() {
			if t := &g.Cells[i]; t.Runs > 0 {
				all = append(all, t.hour(name, c))
				cells = append(cells, c)
			}
		}
	}
	if len(a.Partial.Groups) > 0 {
		add(Everything, a.Partial.Total())
	}
	for _, name := range a.Partial.Names() {
		add(name, a.Partial.Groups[name])
	}
	return all, cells
}

// hour is what came of an hour that was recorded.
func (t *Tally) hour(name string, c Cell) sim.Result {
	hours := max(1, t.Span.Float()) / float64(time.Hour)
	rate := func(s Sum) float64 { return min(s.Float()/hours, 1e15) }
	count := func(s Sum) int { return int(math.Ceil(rate(s))) }
	clock := func(s Sum) time.Duration { return time.Duration(math.Round(rate(s))) }
	mean := func(s, of Sum) float64 { return s.Float() / max(1, of.Float()) }
	runs := SumOf(t.Runs)
	return sim.Result{
		Trace: name, Policy: c.Policy, LimitBytes: int64(mean(t.Limit, runs)), Cycle: c.Cycle,
		Collections: count(t.Collections), RefusalCollections: count(t.Refusals), FailedAllocs: count(t.Failed),
		ExposedPause: clock(t.Exposed), MaxPause: time.Duration(t.Longest), GCBusy: clock(t.Busy),
		PeakLive: int64(mean(t.PeakLive, runs)), MeanLive: mean(t.LiveTime, t.Elapsed), MeanGarbage: mean(t.GarbageTime, t.Elapsed),
		Span: time.Hour, Elapsed: clock(t.Elapsed),
	}
}
