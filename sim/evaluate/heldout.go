package evaluate

import (
	"context"
	"math"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

// Families are the policies with parameters worth tuning, each with what is
// tried. The default of a family comes first.
var Families = [][]string{
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

// LeaveOneOut tunes every family on all workloads but one and tests it there.
func LeaveOneOut(ctx context.Context, ws []*sim.Workload, factors []float64, costs []sim.Cost, ladder sim.Ladder) ([]Choice, error) {
	if len(ws) < 2 {
		return nil, nil
	}
	var all []Choice
	for _, family := range Families {
		names := append([]string{reference}, family...)
		var who []sim.Contender
		for _, name := range names {
			c, err := sim.ParseContender(name)
			if err != nil {
				return nil, err
			}
			who = append(who, c)
		}
		cells, err := Plan{Workloads: ws, Contenders: who, Factors: factors, Costs: costs, Ladder: ladder}.Run(ctx)
		if err != nil {
			return nil, err
		}
		for out := range ws {
			all = append(all, cells.choose(out))
		}
	}
	return all, nil
}

// choose picks the best of the contenders but the first, which is the
// reference, on all workloads but one.
func (c *Cells) choose(out int) Choice {
	test := func(d *Detail) bool { return d.Trace == c.Workloads[out].Name }
	train := func(d *Detail) bool { return !test(d) }
	pick := Choice{Trace: c.Workloads[out].Name, Hindsight: math.Inf(1)}
	least := math.Inf(1)
	for p := 1; p < len(c.Contenders); p++ {
		there := Ratio(c.Of(p, test), c.Of(0, test), Objective)
		pick.Hindsight = min(pick.Hindsight, there)
		if p == 1 {
			pick.Default = there
		}
		if x := Ratio(c.Of(p, train), c.Of(0, train), Objective); x < least {
			least = x
			pick.Chosen, pick.Ratio = c.Contenders[p].String(), there
		}
	}
	return pick
}

// Everyone is every policy that needs no choice of parameters, and the optima.
func Everyone() ([]sim.Contender, error) {
	var names []string
	for _, p := range gc.Policies() {
		names = append(names, p.Name)
	}
	var all []sim.Contender
	for _, name := range append(names, sim.Optima()...) {
		c, err := sim.ParseContender(name)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
