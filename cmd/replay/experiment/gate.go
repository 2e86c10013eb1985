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

// A Pair is a result and what it is compared with.
type Pair struct {
	Name             string
	Result, Baseline *sim.Result // Baseline is nil where there is none
}

// A Failure is a condition that does not hold for a pair.
type Failure struct {
	*Condition
	Name     string  // of the pair
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
	var pairs []Pair
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
		pairs = append(pairs, Pair{g.Name(c), &o.Result, base})
	}
	return CheckPairs(t.Conditions, pairs)
}

// CheckPairs holds every result to the conditions. It returns what fails, in the order
// of the pairs, and the verdict on every mean. It is an error if a condition needs a
// baseline that is not there.
func CheckPairs(conditions []Condition, pairs []Pair) ([]Failure, []Verdict, error) {
	var failures []Failure
	ratios := make([][]float64, len(conditions))
	for _, p := range pairs {
		for k := range conditions {
			cond := &conditions[k]
			switch {
			case cond.Relative && p.Baseline == nil:
				return nil, nil, fmt.Errorf("condition %q: there is no baseline", cond.Text)
			case cond.Mean:
				ratios[k] = append(ratios[k], cond.Metric.Ratio(p.Result, p.Baseline))
			case !cond.Holds(p.Result, p.Baseline):
				f := Failure{Condition: cond, Name: p.Name, Value: cond.Metric.Of(p.Result)}
				if p.Baseline != nil {
					f.Baseline = cond.Metric.Of(p.Baseline)
				}
				failures = append(failures, f)
			}
		}
	}
	var means []Verdict
	for k := range conditions {
		if cond := &conditions[k]; cond.Mean {
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
			return nil, fmt.Errorf("the baseline has no result of %s", g.Name(c))
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
