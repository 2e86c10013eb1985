package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Metric is one number of a [Result] that runs are compared by. Less is
// better for every one of them.
type Metric struct {
	Name string // as in the JSON form
	Unit string // ns, B, or empty for a count
	Of   func(*Result) float64
}

var metrics = []Metric{
	{"collections", "", func(r *Result) float64 { return float64(r.Collections) }},
	{"refusal_collections", "", func(r *Result) float64 { return float64(r.RefusalCollections) }},
	{"failed_allocs", "", func(r *Result) float64 { return float64(r.FailedAllocs) }},
	{"exposed_pause_ns", "ns", func(r *Result) float64 { return float64(r.ExposedPause) }},
	{"max_pause_ns", "ns", func(r *Result) float64 { return float64(r.MaxPause) }},
	{"gc_busy_ns", "ns", func(r *Result) float64 { return float64(r.GCBusy) }},
	{"peak_live_bytes", "B", func(r *Result) float64 { return float64(r.PeakLive) }},
	{"mean_live_bytes", "B", func(r *Result) float64 { return r.MeanLive }},
	{"mean_garbage_bytes", "B", func(r *Result) float64 { return r.MeanGarbage }},
	{"elapsed_ns", "ns", func(r *Result) float64 { return float64(r.Elapsed) }},
	{"objective_ns", "ns", func(r *Result) float64 { return float64(r.Objective()) }},
}

// Metrics lists them in the order of the JSON form; objective_ns, which
// follows from the others ([Result.Objective]), is last.
func Metrics() []Metric { return slices.Clone(metrics) }

// MetricNamed finds a metric by its name, with or without its unit:
// exposed_pause_ns or exposed_pause.
func MetricNamed(name string) (Metric, error) {
	var names []string
	for _, m := range metrics {
		bare := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_ns"), "_bytes")
		if name == m.Name || name == bare {
			return m, nil
		}
		names = append(names, bare)
	}
	return Metric{}, fmt.Errorf("sim: no metric %q (want %s)", name, strings.Join(names, ", "))
}

// Pareto returns the indices of the results that no other beats in one metric
// without losing in the other, by increasing x. Of equals the first is kept.
func Pareto(results []Result, x, y Metric) []int {
	order := make([]int, len(results))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if c := cmp.Compare(x.Of(&results[a]), x.Of(&results[b])); c != 0 {
			return c
		}
		return cmp.Compare(y.Of(&results[a]), y.Of(&results[b]))
	})
	var front []int
	for _, i := range order {
		if len(front) == 0 || y.Of(&results[i]) < y.Of(&results[front[len(front)-1]]) {
			front = append(front, i)
		}
	}
	return front
}
