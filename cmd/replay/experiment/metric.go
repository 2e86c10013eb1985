package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/montanaflynn/stats"

	"github.com/eagergc/eagergc/sim"
)

// A Metric is a number by which results are compared. Less is better.
type Metric struct {
	Name string // as in the JSON form
	Unit string // ns, B, or empty for a count
	Of   func(*sim.Result) float64
}

// Metrics that several reports use.
var (
	Exposed   = Metric{"exposed_pause_ns", "ns", func(r *sim.Result) float64 { return float64(r.ExposedPause) }}
	Busy      = Metric{"gc_busy_ns", "ns", func(r *sim.Result) float64 { return float64(r.GCBusy) }}
	MeanLive  = Metric{"mean_live_bytes", "B", func(r *sim.Result) float64 { return r.MeanLive }}
	Objective = Metric{"objective_ns", "ns", func(r *sim.Result) float64 { return float64(r.Objective()) }} // sim.Result.Objective
)

// metrics are in the order of the JSON form. The last one, objective_ns, follows from the
// others.
var metrics = []Metric{
	{"collections", "", func(r *sim.Result) float64 { return float64(r.Collections) }},
	{"refusal_collections", "", func(r *sim.Result) float64 { return float64(r.RefusalCollections) }},
	{"failed_allocs", "", func(r *sim.Result) float64 { return float64(r.FailedAllocs) }},
	Exposed,
	{"max_pause_ns", "ns", func(r *sim.Result) float64 { return float64(r.MaxPause) }},
	Busy,
	{"peak_live_bytes", "B", func(r *sim.Result) float64 { return float64(r.PeakLive) }},
	MeanLive,
	{"mean_garbage_bytes", "B", func(r *sim.Result) float64 { return r.MeanGarbage }},
	{"elapsed_ns", "ns", func(r *sim.Result) float64 { return float64(r.Elapsed) }},
	Objective,
}

// metricNamed finds a metric by its name, with or without its unit: exposed_pause_ns or
// exposed_pause.
func metricNamed(name string) (Metric, error) {
	var names []string
	for _, m := range metrics {
		bare := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_ns"), "_bytes")
		if name == m.Name || name == bare {
			return m, nil
		}
		names = append(names, bare)
	}
	return Metric{}, fmt.Errorf("no metric %q (want %s)", name, strings.Join(names, ", "))
}

// Ratio returns the metric of r over that of the reference. It adds 1 ms, 1 MiB or 1 to both, by
// the unit, so that a ratio to 0 is finite.
func (m Metric) Ratio(r, reference *sim.Result) float64 {
	little := map[string]float64{"ns": float64(time.Millisecond), "B": 1 << 20, "": 1}[m.Unit]
	return (m.Of(r) + little) / (m.Of(reference) + little)
}

// GeometricMean returns NaN if xs is empty or has a number that is 0 or less.
func GeometricMean(xs []float64) float64 {
	mean, err := stats.GeometricMean(xs)
	if err != nil {
		return math.NaN()
	}
	return mean
}

// Mean is the geometric mean of a number of each outcome. It is NaN without outcomes, or if one
// has no result.
func Mean(outcomes []*Outcome, of func(*Outcome) float64) float64 {
	var xs []float64
	for _, o := range outcomes {
		if o.Err != nil {
			return math.NaN()
		}
		xs = append(xs, of(o))
	}
	return GeometricMean(xs)
}

// MeanRatio is the geometric mean of [Metric.Ratio] of each outcome and the reference of the
// same index. It is NaN if one has no result.
func MeanRatio(outcomes, references []*Outcome, m Metric) float64 {
	i := -1
	return Mean(outcomes, func(o *Outcome) float64 {
		if i++; references[i].Err != nil {
			return math.NaN()
		}
		return m.Ratio(&o.Result, &references[i].Result)
	})
}

// Pareto returns the indices of the results on the Pareto front of two metrics, by increasing x.
// Of equal results it keeps the first.
func Pareto(results []sim.Result, x, y Metric) []int {
	order := make([]int, len(results))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(x.Of(&results[a]), x.Of(&results[b])), cmp.Compare(y.Of(&results[a]), y.Of(&results[b])))
	})
	var front []int
	for _, i := range order {
		if len(front) == 0 || y.Of(&results[i]) < y.Of(&results[front[len(front)-1]]) {
			front = append(front, i)
		}
	}
	return front
}
