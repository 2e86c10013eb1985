package main

import (
	"context"
	"io"

	"github.com/eagergc/eagergc/sim"
)

// A comparison is the product of its workloads, limits, costs and contenders,
// and after run one outcome for each.
type comparison struct {
	ctx        context.Context
	workloads  []*sim.Workload
	limits     []limit
	costs      []sim.Cost
	contenders []sim.Contender
	ladder     sim.Ladder
	outcomes   []sim.Outcome // by workload, limit, cost, contender
}

// cells lists the product, in the order of the outcomes.
func (c *comparison) cells() []sim.Cell {
	var cells []sim.Cell
	for _, w := range c.workloads {
		for _, l := range c.limits {
			for _, cost := range c.costs {
				for _, p := range c.contenders {
					cells = append(cells, sim.Cell{Workload: w, Contender: p, Config: c.config(w, l, cost)})
				}
			}
		}
	}
	return cells
}

// newComparison reads the flags that say what to compare, and the workloads.
// Braces are expanded.
func newComparison(ctx context.Context, files []string, policies, limits string, price *price) (*comparison, error) {
	c := &comparison{ctx: ctx}
	for _, text := range []*string{&policies, &limits, &price.cycle} {
		expanded, err := expandList(*text)
		if err != nil {
			return nil, err
		}
		*text = expanded
	}
	var err error
	if c.contenders, err = parsePolicies(policies); err != nil {
		return nil, err
	}
	if c.limits, err = parseEach(limits, parseLimit); err != nil {
		return nil, err
	}
	if c.costs, c.ladder, err = price.parse(); err != nil {
		return nil, err
	}
	c.workloads, err = loadWorkloads(files)
	return c, err
}

// run fills in the outcomes.
func (c *comparison) run(stderr io.Writer) error {
	cells := c.cells()
	bar := newProgress(stderr, "runs", len(cells))
	c.outcomes = sim.RunAll(c.ctx, cells, bar.set)
	bar.done()
	return c.ctx.Err()
}

func (c *comparison) config(w *sim.Workload, l limit, cost sim.Cost) sim.Config {
	return sim.Config{Limit: l.of(w), Cost: cost, Ladder: c.ladder}
}

// at returns the outcome of a cell by its indices.
func (c *comparison) at(workload, limit, cost, contender int) *sim.Outcome {
	i := (workload*len(c.limits)+limit)*len(c.costs) + cost
	return &c.outcomes[i*len(c.contenders)+contender]
}
