package main

import (
	"context"
	"math"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
)

// families are the policies with parameters worth tuning, each with what is
// tried. The default of a family comes first.
var families = [][]string{
	{"threshold:0.8", "threshold:0.5", "threshold:0.6", "threshold:0.7", "threshold:0.9", "threshold:0.95"},
	{"periodic:10ms", "periodic:1ms", "periodic:3ms", "periodic:30ms", "periodic:100ms", "periodic:300ms"},
	{"growth", "growth:0.25", "growth:0.5", "growth:0.82", "growth:1.5", "growth:2"},
	{"sqrt", "sqrt:1e-11", "sqrt:1e-10", "sqrt:1e-9", "sqrt:1e-8", "sqrt:1e-7"},
	{"pacer", "pacer:share=0.01", "pacer:share=0.02", "pacer:share=0.1", "pacer:share=0.2"},
}

// A Choice is the outcome of tuning a family on all workloads but one.
type Choice struct {
	Trace     string // held out
	Chosen    string
	Ratio     float64 // objective of the chosen one on Trace, against the reference
	Default   float64 // of the family's default
	Hindsight float64 // of the best one on Trace
}

// leaveOneOut tunes every family on all workloads of a grid but one and tests it
// there. The contenders of the grid do not count.
func leaveOneOut(ctx context.Context, grid experiment.Grid) ([]Choice, error) {
	if len(grid.Workloads) < 2 {
		return nil, nil
	}
	var all []Choice
	for _, family := range families {
		who, err := experiment.ParseContenders(strings.Join(append([]string{reference}, family...), ","))
		if err != nil {
			return nil, err
		}
		g := experiment.Grid{Workloads: grid.Workloads, Limits: grid.Limits, Costs: grid.Costs, Ladder: grid.Ladder, Contenders: who}
		if err := g.Run(ctx, nil); err != nil {
			return nil, err
		}
		for held := range g.Workloads {
			all = append(all, choose(&g, held))
		}
	}
	return all, nil
}

// choose picks the best of a grid's contenders but the first, which is the
// reference, on all workloads but one.
func choose(g *experiment.Grid, held int) Choice {
	test := func(c experiment.Cell) bool { return c.Workload == held }
	train := func(c experiment.Cell) bool { return !test(c) }
	pick := Choice{Trace: g.Workloads[held].Name, Hindsight: math.Inf(1)}
	least := math.Inf(1)
	for p := 1; p < len(g.Contenders); p++ {
		there := experiment.MeanRatio(g.Select(p, test), g.Select(0, test), experiment.Objective)
		pick.Hindsight = min(pick.Hindsight, there)
		if p == 1 {
			pick.Default = there
		}
		if x := experiment.MeanRatio(g.Select(p, train), g.Select(0, train), experiment.Objective); x < least {
			least = x
			pick.Chosen, pick.Ratio = g.Contenders[p].String(), there
		}
	}
	return pick
}
