package experiment

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/sim"
)

// A Failure is a condition that is false in a cell.
type Failure struct {
	*Condition
	Name     string  // of the cell
	Value    float64 // the metric's
	Baseline float64 // the same of the baseline; 0 without one
}

// A Verdict is the mean ratio of a condition over all cells, and whether the condition is true.
type Verdict struct {
	*Condition
	Ratio float64 // NaN if a ratio is unknown
	OK    bool
}

// Check tests the first contender of a grid that has run. Without a baseline the results are
// compared with those of the second contender, if there is one. Check returns the failures in
// the order of the cells, and the verdict on every mean. It returns an error if a run has no
// result, or if a condition needs a missing baseline.
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
			case !cond.holds(&o.Result, base):
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

// baseline returns the baseline of a cell; nil without one.
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

// A Condition is a bound on a metric: `max_pause<=20ms`, `refusal_collections==0`,
// `exposed_pause<=1.05x` (times the baseline's), or, over all cells at once, `geomean
// exposed_pause<=0.5x`.
type Condition struct {
	Text     string
	Metric   Metric
	Mean     bool    // of the ratios to the baseline over all cells
	Relative bool    // Value is a factor of the baseline's
	Value    float64 // a finite number, in the metric's unit unless Relative
	op       string
}

const conditionForm = `^\s*(geomean\s+)?(\w+)\s*(<=|>=|==|<|>)\s*(\S+)\s*$`

// ParseCondition reads METRIC OP VALUE, with OP one of <= < == > >=, and geomean in front for a
// mean. VALUE is a duration, a size or a count, by the unit of the metric, or a factor such as
// 1.05x.
func ParseCondition(text string) (Condition, error) {
	m := regexp.MustCompile(conditionForm).FindStringSubmatch(text)
	if m == nil {
		return Condition{}, fmt.Errorf("condition %q: want METRIC<=VALUE, such as max_pause<=20ms, or geomean exposed_pause<=0.5x", text)
	}
	metric, err := metricNamed(m[2])
	if err != nil {
		return Condition{}, fmt.Errorf("condition %q: %w", text, err)
	}
	c := Condition{Text: strings.TrimSpace(text), Mean: m[1] != "", Metric: metric, op: m[3]}
	if c.Value, c.Relative, err = parseBound(m[4], metric.Unit); err != nil {
		return Condition{}, fmt.Errorf("condition %q: %w", text, err)
	}
	if math.IsNaN(c.Value) || math.IsInf(c.Value, 0) {
		return Condition{}, fmt.Errorf("condition %q: the bound must be a finite number", text)
	}
	if c.Mean && !c.Relative {
		return Condition{}, fmt.Errorf("condition %q: a geomean is of ratios to the baseline: give the bound as 0.5x", text)
	}
	return c, nil
}

func parseBound(text, unit string) (value float64, relative bool, err error) {
	if digits, ok := strings.CutSuffix(text, "x"); ok {
		value, err = strconv.ParseFloat(digits, 64)
		return value, true, err
	}
	switch unit {
	case "ns":
		d, err := time.ParseDuration(text)
		return float64(d), false, err
	case "B":
		n, err := ParseBytes(text)
		return float64(n), false, err
	}
	value, err = strconv.ParseFloat(text, 64)
	return value, false, err
}

func (c *Condition) compare(a, b float64) bool {
	switch c.op {
	case "<=":
		return a <= b
	case ">=":
		return a >= b
	case "<":
		return a < b
	case ">":
		return a > b
	}
	return a == b
}

// holds reports whether the condition is true for a result and its baseline. The baseline is
// used only if the bound is relative.
func (c *Condition) holds(r, base *sim.Result) bool {
	bound := c.Value
	if c.Relative {
		bound *= c.Metric.Of(base)
	}
	return c.compare(c.Metric.Of(r), bound)
}
