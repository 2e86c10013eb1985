package main

import (
	"context"
	"slices"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// What a study holds policies against.
const (
	reference = "cudajl"          // exposed pause and collector time
	Best      = "optimum-overlap" // the objective
)

var (
	studyFactors  = []float64{1, 1.25, 1.5, 2, 3, 4, 6}
	judgedFactors = []float64{1.5, 2, 4}
	studyCycles   = []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}
	judgedCycles  = []time.Duration{time.Millisecond, 10 * time.Millisecond}
	boundCycles   = []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}
	heapMiB       = []float64{1, 16, 64, 256, 1024}
)

// A study holds policies against the reference and the best schedule known. It
// is judged at limits of 1.5x, 2x and 4x and cycles of 1 and 10 ms; the other
// limits and cycles show how far that reaches.
type study struct {
	Grid   *experiment.Grid // limits 1x to 6x, cycles 0.1 ms to 1 s, true waits, with details
	Noisy  *experiment.Grid // the judged cells, with expected waits wrong by up to a half
	Heaps  *experiment.Grid // the judged limits, with cycles that cost what a Go heap of some size does
	Bounds []bound          // of the best schedule
	Held   []Choice         // leave one out
}

// A bound is how far the best schedule known is from what none can beat.
type bound struct {
	Trace          string
	Limit          experiment.Limit
	Cycle          time.Duration
	Known, AtLeast time.Duration // exposed pause
}

// newStudy runs everything: some thousand replays.
func newStudy(ctx context.Context, workloads []*sim.Workload, contenders []experiment.Contender) (*study, error) {
	grid := func(factors []float64, costs []sim.Cost) *experiment.Grid {
		return &experiment.Grid{Workloads: workloads, Contenders: contenders, Limits: factorLimits(factors), Costs: costs, Ladder: sim.Ladder{Factor: 2}}
	}
	var heaps []sim.Cost
	for _, mib := range heapMiB { // 0.1 ms for an empty heap and 0.25 ms per MiB, about what two cores take
		heaps = append(heaps, sim.Cost{Base: 100 * time.Microsecond, PerMiB: 250 * time.Microsecond, HeapMiB: mib})
	}
	s := &study{
		Grid:  grid(studyFactors, fixedCosts(studyCycles)),
		Noisy: grid(judgedFactors, fixedCosts(judgedCycles)),
		Heaps: grid(judgedFactors, heaps),
	}
	s.Grid.Details = true
	s.Noisy.WaitNoise = 0.5
	for _, g := range []*experiment.Grid{s.Grid, s.Noisy, s.Heaps} {
		if err := g.Run(ctx, nil); err != nil {
			return nil, err
		}
	}
	s.bounds()
	var err error
	s.Held, err = leaveOneOut(ctx, *grid(judgedFactors, fixedCosts(judgedCycles)))
	return s, err
}

func (s *study) bounds() {
	g := &experiment.Grid{Workloads: s.Grid.Workloads, Limits: s.Grid.Limits[1:], Costs: fixedCosts(boundCycles), Ladder: s.Grid.Ladder, Contenders: s.Grid.Contenders[:1]}
	for i := range g.Len() {
		c := g.Cell(i)
		cfg := g.Config(c)
		if best, least, err := sim.Optimum("optimum-overlap", g.Workloads[c.Workload], cfg); err == nil {
			s.Bounds = append(s.Bounds, bound{g.Workloads[c.Workload].Name, g.Limits[c.Limit], cfg.Cost.Base, best.ExposedPause, least})
		}
	}
}

// judged reports whether the study is judged by a cell of its Grid.
func (s *study) judged(c experiment.Cell) bool {
	return slices.Contains(judgedFactors, s.Grid.Limits[c.Limit].Factor) && slices.Contains(judgedCycles, s.Grid.Costs[c.Cost].Base)
}

func factorLimits(factors []float64) (limits []experiment.Limit) {
	for _, f := range factors {
		limits = append(limits, experiment.Limit{Factor: f})
	}
	return limits
}

func fixedCosts(cycles []time.Duration) (costs []sim.Cost) {
	for _, d := range cycles {
		costs = append(costs, sim.Fixed(d))
	}
	return costs
}
