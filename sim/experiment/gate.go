package experiment

import (
	"fmt"

	"github.com/eagergc/eagergc/sim"
)

// A Gate is conditions that a policy must meet in every cell of a grid.
type Gate struct {
	Conditions []Condition
	Baseline   map[Key]sim.Result // nil: the second contender of the grid, if there is one
}

// A Failure is a condition that does not hold in a cell.
type Failure struct {
	*Condition
	Cell     Cell
	Value    float64 // the metric's
	Baseline float64 // the same of the baseline; 0 without one
}

// A Verdict is the mean ratio of a condition over all cells, and whether it holds.
type Verdict struct {
	*Condition
	Ratio float64 // NaN if it cannot be said
	OK    bool
}

// Check holds the first contender of a grid that has run to the conditions. It
// returns what fails, in the order of the cells, and the verdict on every mean.
// It is an error if a run has no result, or the baseline has no such run.
func (t *Gate) Check(g *Grid) ([]Failure, []Verdict, error) {
	var failures []Failure
	ratios := make([][]float64, len(t.Conditions))
	for i, o := range g.Outcomes() {
		c := g.Cell(i)
		if c.Contender != 0 {
			continue
		}
		if o.Err != nil {
			return nil, nil, fmt.Errorf("%s: %w", g.Name(c), o.Err)
		}
		base, err := t.baseline(g, c)
		if err != nil {
			return nil, nil, fmt.Errorf("baseline: %w", err)
		}
		for k := range t.Conditions {
			cond := &t.Conditions[k]
			switch {
			case cond.Relative && base == nil:
				return nil, nil, fmt.Errorf("condition %q: there is no baseline", cond.Text)
			case cond.Mean:
				ratios[k] = append(ratios[k], cond.Metric.Ratio(&o.Result, base))
			case !cond.Holds(&o.Result, base):
				f := Failure{Condition: cond, Cell: c, Value: cond.Metric.Of(&o.Result)}
				if base != nil {
					f.Baseline = cond.Metric.Of(base)
				}
				failures = append(failures, f)
			}
		}
	}
	var means []Verdict
	for k := range t.Conditions {
		if cond := &t.Conditions[k]; cond.Mean {
			mean := GeometricMean(ratios[k])
			means = append(means, Verdict{cond, mean, cond.compare(mean, cond.Value)})
		}
	}
	return failures, means, nil
}

// baseline returns what a cell is compared with: nil if there is nothing.
func (t *Gate) baseline(g *Grid, c Cell) (*sim.Result, error) {
	switch {
	case t.Baseline != nil:
		r, ok := t.Baseline[g.key(c)]
		if !ok {
			return nil, fmt.Errorf("the results have no cell %+v", g.key(c))
		}
		return &r, nil
	case len(g.Contenders) > 1:
		c.Contender = 1
		o := g.At(c)
		if o.Err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name(c), o.Err)
		}
		return &o.Result, nil
	}
	return nil, nil
}
