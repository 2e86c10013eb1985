package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// rivals are what a proof holds a policy against: the cudajl ones in their pauses,
// and the first, sqrt and never in the cells that are lost.
var rivals = []string{"cudajl", "cudajl:overlap=true", "sqrt", "never", "cudajl:poll=50us"}

// A proof holds one policy against rivals and the best schedule known, in trials.
// Its measure J is [sim.Result.Objective].
type proof struct {
	Policy experiment.Contender
	Trials []*tried
}

// A tried is a trial that has run: the first contender of its grid is the policy,
// the others are the rivals.
type tried struct {
	*experiment.Grid
	Trial trial
	Lost  []loss
	known []*experiment.Outcome // the best schedule known, by workload, limit and cost
}

// newProof tries a policy on programs. It calls each, if it is not nil, with the name
// of a trial before that runs.
func newProof(ctx context.Context, programs []*trace.Trace, policy experiment.Contender, trials []trial, each func(name string)) (*proof, error) {
	who, err := experiment.ParseContenders(strings.Join(rivals, ","))
	if err != nil {
		return nil, err
	}
	optima, err := experiment.ParseContenders("optimum-overlap,optimum-objective")
	if err != nil {
		return nil, err
	}
	p := &proof{Policy: policy}
	best := make(map[string]*experiment.Grid) // the optima are told nothing: trials share them
	var unchanged []*sim.Workload             // what most trials run
	for _, t := range trials {
		if each != nil {
			each(t.Name)
		}
		loads := unchanged
		if loads == nil || t.change != nil {
			if loads, err = t.compile(programs); err != nil {
				return nil, fmt.Errorf("trial %s: %w", t.Name, err)
			}
		}
		if t.change == nil {
			unchanged = loads
		}
		tried := &tried{Trial: t, Grid: t.grid(loads, append([]experiment.Contender{policy}, who...))}
		if best[t.world()] == nil {
			g := t.grid(loads, optima)
			g.Noise = nil // they are of the base world
			best[t.world()] = g
		}
		for _, g := range []*experiment.Grid{tried.Grid, best[t.world()]} {
			if err := g.Run(ctx, nil); err != nil {
				return nil, err
			}
		}
		tried.know(best[t.world()])
		if err := tried.lose(ctx); err != nil {
			return nil, err
		}
		p.Trials = append(p.Trials, tried)
	}
	return p, nil
}

func (t *trial) compile(programs []*trace.Trace) ([]*sim.Workload, error) {
	if t.change != nil {
		programs = t.change(programs)
	}
	return compile(programs)
}

// know takes what has the least J in each cell, of the optima and of all that ran.
func (t *tried) know(optima *experiment.Grid) {
	t.known = make([]*experiment.Outcome, t.Len()/len(t.Contenders))
	for i := range t.known {
		for _, g := range []*experiment.Grid{t.Grid, optima} {
			n := len(g.Contenders)
			for _, o := range g.Outcomes()[i*n : (i+1)*n] {
				if o.Err == nil && o.FailedAllocs == 0 && (t.known[i] == nil || o.Objective() < t.known[i].Objective()) {
					t.known[i] = o
				}
			}
		}
	}
}

// Known returns J of the best schedule known in the cell of an index in the Grid.
func (t *tried) Known(i int) time.Duration {
	best := t.best(i)
	if best == nil {
		return math.MaxInt64
	}
	return best.Objective()
}

// best is that schedule; nil if none ran to its end.
func (t *tried) best(i int) *experiment.Outcome { return t.known[i/len(t.Contenders)] }

// j is the geometric mean of a contender's J against the best schedule known, 1 ms
// added to both, over the cells for which keep is true; nil keeps all.
func (t *tried) J(contender int, keep func(experiment.Cell) bool) float64 {
	return t.mean(contender, keep, func(i int, o *experiment.Outcome) float64 { return ratio(o.Objective(), t.Known(i)) })
}

// delayed is the same of the policy's delay against that of another contender.
func (t *tried) Delayed(against int, keep func(experiment.Cell) bool) float64 {
	return t.mean(0, keep, func(i int, o *experiment.Outcome) float64 { return ratio(o.Delay(), t.Outcomes()[i+against].Delay()) })
}

// knownDelayed is the same of the best schedule known. That knows all that will come.
func (t *tried) KnownDelayed(against int, keep func(experiment.Cell) bool) float64 {
	return t.mean(0, keep, func(i int, _ *experiment.Outcome) float64 {
		best := t.best(i)
		if best == nil {
			return math.Inf(1)
		}
		return ratio(best.Delay(), t.Outcomes()[i+against].Delay())
	})
}

// Of keeps the cells of a workload.
func Of(workload int) func(experiment.Cell) bool {
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

// Worst returns the workload with the largest J of the policy, and that.
func (t *tried) Worst() (workload int, j float64) {
	for i := range t.Workloads {
		if x := t.J(0, Of(i)); x > j {
			workload, j = i, x
		}
	}
	return workload, j
}
