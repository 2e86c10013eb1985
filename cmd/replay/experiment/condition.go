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

// A Condition is a bound on a metric: `max_pause<=20ms`, `refusal_collections==0`,
// `exposed_pause<=1.05x` (times the baseline's), or, over all cells at once,
// `geomean exposed_pause<=0.5x`.
type Condition struct {
	Text     string
	Metric   Metric
	Mean     bool    // of the ratios to the baseline over all cells
	Relative bool    // Value is a factor of the baseline's
	Value    float64 // a finite number, in the metric's unit unless Relative
	op       string
}

const conditionForm = `^\s*(geomean\s+)?(\w+)\s*(<=|>=|==|<|>)\s*(\S+)\s*$`

// ParseCondition reads METRIC OP VALUE, with OP one of <= < == > >=, and
// geomean in front for a mean. VALUE is a duration, a size or a count, by the unit
// of the metric, or a factor such as 1.05x.
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

// Holds says whether the condition holds for a result and its baseline, which
// is not used unless the bound is relative.
func (c *Condition) Holds(r, base *sim.Result) bool {
	bound := c.Value
	if c.Relative {
		bound *= c.Metric.Of(base)
	}
	return c.compare(c.Metric.Of(r), bound)
}
