package experiment

import (
	"fmt"

	"github.com/eagergc/eagergc/sim"
)

// A Failure is a condition that does not hold for a cell.
type Failure struct {
	*Condition
	Name     string  // of the cell
	Value    float64 // the metric's
	Baseline float64 // the same of the baseline; 0 without one
}

// A Verdict is the mean ratio of a condition over all cells, and whether it holds.
type Verdict struct {
	*Condition
	Ratio float64 // NaN if it cannot be said
	OK    bool
}

// Check holds the first contender of a grid that has run to conditions. Results without a
// baseline are compared with those of the second contender, if there is one. It returns what
// fails, in the order of the cells, and the verdict on every mean. It is an error if a run
// has no result, or a condition needs a baseline that is not there.
func (g *Grid) Check(conditions []Condition, baseline map[Key]sim.Result) (failures []Failure, means []Verdict, err error) {
	ratios := make([][]float64, len(conditions))
	for i, o := range g.Outcomes() {
		c := g.Cell(i)
		if c.Contender != 0 {
			continue
		}
		if o.Err != nil {
			return nil, nil, fmt.Errorf("%s: %w", g.Name(c), o.Err)
		}
		base, err := g.baseline(c, baseline)
		if err != nil {
			return nil, nil, err
		}
		for k := range conditions {
			cond := &conditions[k]
			switch {
			case cond.Relative && base == nil:
				return nil, nil, fmt.Errorf("condition %q: there is no baseline", cond.Text)
			case cond.Mean:
				ratios[k] = append(ratios[k], cond.Metric.Ratio(&o.Result, base))
			case !cond.Holds(&o.Result, base):
				f := Failure{Condition: cond, Name: g.Name(c), Value: cond.Metric.Of(&o.Result)}
				if base != nil {
					f.Baseline = cond.Metric.Of(base)
				}
				failures = append(failures, f)
			}
		}
	}
	for k := range conditions {
		if cond := &conditions[k]; cond.Mean {
			mean := GeometricMean(ratios[k])
			means = append(means, Verdict{cond, mean, cond.compare(mean, cond.Value)})
		}
	}
	return failures, means, nil
}

// baseline returns what a cell is compared with: nil if there is nothing.
func (g *Grid) baseline(c Cell, known map[Key]sim.Result) (*sim.Result, error) {
	switch {
	case known != nil:
		r, ok := known[g.key(c)]
		if !ok {
			return nil, fmt.Errorf("the baseline has no result of %s", g.Name(c))
		}
		return &r, nil
	case len(g.Contenders) > 1:
		c.Contender = 1
		o := g.At(c)
		if o.Err != nil {
			return nil, fmt.Errorf("baseline: %s: %w", g.Name(c), o.Err)
		}
		return &o.Result, nil
	}
	return nil, nil
}
