package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/montanaflynn/stats"

	"github.com/eagergc/eagergc/sim"
)

// A condition is a bound on a metric: `max_pause<=20ms`, `refusal_collections==0`,
// `exposed_pause<=1.05x` (times the baseline's), or, over all cells at once,
// `geomean exposed_pause<=0.5x`.
type condition struct {
	text     string
	mean     bool // of the ratios to the baseline over all cells
	metric   sim.Metric
	op       string
	value    float64
	relative bool // value is a factor of the baseline's
}

var conditionForm = regexp.MustCompile(`^\s*(geomean\s+)?(\w+)\s*(<=|>=|==|<|>)\s*(\S+)\s*$`)

func parseCondition(text string) (condition, error) {
	m := conditionForm.FindStringSubmatch(text)
	if m == nil {
		return condition{}, fmt.Errorf("condition %q: want METRIC<=VALUE, such as max_pause<=20ms, or geomean exposed_pause<=0.5x", text)
	}
	metric, err := sim.MetricNamed(m[2])
	if err != nil {
		return condition{}, fmt.Errorf("condition %q: %w", text, err)
	}
	c := condition{text: strings.TrimSpace(text), mean: m[1] != "", metric: metric, op: m[3]}
	if c.value, c.relative, err = parseBound(m[4], metric.Unit); err != nil {
		return condition{}, fmt.Errorf("condition %q: %w", text, err)
	}
	if math.IsNaN(c.value) || math.IsInf(c.value, 0) {
		return condition{}, fmt.Errorf("condition %q: the bound must be a finite number", text)
	}
	if c.mean && !c.relative {
		return condition{}, fmt.Errorf("condition %q: a geomean is of ratios to the baseline: give the bound as 0.5x", text)
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
		n, err := parseBytes(text)
		return float64(n), false, err
	}
	value, err = strconv.ParseFloat(text, 64)
	return value, false, err
}

func (c *condition) compare(a, b float64) bool {
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

// holds says whether the condition holds for a result and its baseline, which
// is not used unless the bound is relative.
func (c *condition) holds(r, base *sim.Result) bool {
	bound := c.value
	if c.relative {
		bound *= c.metric.Of(base)
	}
	return c.compare(c.metric.Of(r), bound)
}

// ratio is the metric over the baseline's. To both sides something small is
// added, so that a ratio to nothing is not infinite: 1 ms, 1 MiB or 1.
func (c *condition) ratio(r, base *sim.Result) float64 {
	small := map[string]float64{"ns": 1e6, "B": 1 << 20, "": 1}[c.metric.Unit]
	return (c.metric.Of(r) + small) / (c.metric.Of(base) + small)
}

// holdsMean returns the geometric mean of the ratios and whether it is in bounds.
func (c *condition) holdsMean(ratios []float64) (float64, bool) {
	mean, err := stats.GeometricMean(ratios)
	if err != nil {
		return math.NaN(), false
	}
	return mean, c.compare(mean, c.value)
}

// show writes a value of the condition's metric.
func (c *condition) show(v float64) string {
	switch c.metric.Unit {
	case "ns":
		return formatDuration(time.Duration(v))
	case "B":
		return formatBytes(int64(v))
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
