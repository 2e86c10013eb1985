package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// rivals are the policies that a trial runs beside the judged one.
var rivals = []string{"cudajl", "cudajl:overlap=true", "sqrt", "never", "cudajl:poll=50us"}

// A tried is a trial that has run. The first contender of its grid is the judged policy, and the
// others are the rivals. Its measure J is [sim.Result.Objective].
type tried struct {
	*experiment.Grid
	trial trial
	best  []*experiment.Outcome // with the least J, by workload, limit and cost; nil if every run failed
}

// prove runs a policy, its rivals and the optima in each trial. It calls each with the name of a
// trial before it runs the trial.
func prove(ctx context.Context, programs []*trace.Trace, policy experiment.Contender, trials []trial, each func(name string)) ([]*tried, error) {
	who, optima := contenders(rivals...), contenders("optimum-overlap", "optimum-objective")
	var all []*tried
	best := make(map[string]*experiment.Grid) // trials share the optima, which depend on the world alone
	var unchanged []*sim.Workload             // of the trials that take the programs as they are
	for _, t := range trials {
		each(t.Name)
		loads := unchanged
		if loads == nil || t.change != nil {
			var err error
			if loads, err = t.compile(programs); err != nil {
				return nil, fmt.Errorf("trial %s: %w", t.Name, err)
			}
		}
		if t.change == nil {
			unchanged = loads
		}
		x := &tried{trial: t, Grid: t.grid(loads, append([]experiment.Contender{policy}, who...))}
		if best[t.world()] == nil {
			g := t.grid(loads, optima)
			g.Noise = nil // the optima are defined in the world without noise alone
			best[t.world()] = g
		}
		for _, g := range []*experiment.Grid{x.Grid, best[t.world()]} {
			if err := g.Run(ctx, nil); err != nil {
				return nil, err
			}
		}
		x.findBest(best[t.world()])
		all = append(all, x)
	}
	return all, nil
}

func (t *trial) compile(programs []*trace.Trace) ([]*sim.Workload, error) {
	if t.change != nil {
		programs = t.change(programs)
	}
	return compile(programs)
}

// findBest finds the outcome with the least J in each cell, among the optima and all contenders.
func (t *tried) findBest(optima *experiment.Grid) {
	t.best = make([]*experiment.Outcome, t.Len()/len(t.Contenders))
	for i := range t.best {
		for _, g := range []*experiment.Grid{t.Grid, optima} {
			n := len(g.Contenders)
			for _, o := range g.Outcomes()[i*n : (i+1)*n] {
				if o.Err == nil && o.FailedAllocs == 0 && (t.best[i] == nil || o.Objective() < t.best[i].Objective()) {
					t.best[i] = o
				}
			}
		}
	}
}

// known returns the least J known in the cell of outcome i.
func (t *tried) known(i int) time.Duration {
	if best := t.best[i/len(t.Contenders)]; best != nil {
		return best.Objective()
	}
	return math.MaxInt64
}

// j returns the geometric mean of a contender's J divided by the least known J. It adds 1 ms to
// both. It uses the cells for which keep is true; a nil keep uses all.
func (t *tried) j(contender int, keep func(experiment.Cell) bool) float64 {
	return t.mean(contender, keep, func(i int, o *experiment.Outcome) float64 { return ratio(o.Objective(), t.known(i)) })
}

// delayed returns the same mean of the judged policy's delay divided by that of a rival.
func (t *tried) delayed(rival int) float64 {
	return t.mean(0, nil, func(i int, o *experiment.Outcome) float64 { return ratio(o.Delay(), t.Outcomes()[i+rival].Delay()) })
}

// ofWorkload keeps the cells of a workload.
func ofWorkload(workload int) func(experiment.Cell) bool {
	return func(c experiment.Cell) bool { return c.Workload == workload }
}

func (t *tried) mean(contender int, keep func(experiment.Cell) bool, number func(int, *experiment.Outcome) float64) float64 {
	var xs []float64
	for i, o := range t.Outcomes() {
		if c := t.Cell(i); c.Contender == contender && (keep == nil || keep(c)) {
			xs = append(xs, number(i, o))
		}
	}
	return experiment.GeometricMean(xs)
}

func ratio(a, b time.Duration) float64 {
	return float64(a+time.Millisecond) / float64(b+time.Millisecond)
}

// worst returns the workload in which J of the judged policy is largest, and that J.
func (t *tried) worst() (workload int, j float64) {
	for i := range t.Workloads {
		if x := t.j(0, ofWorkload(i)); x > j {
			workload, j = i, x
		}
	}
	return workload, j
}
