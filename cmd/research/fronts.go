package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
)

// at returns the collector time of a front where it takes a given memory. Between two points it is
// even in logarithms. It is NaN beyond the points.
func at(front []heapPoint, memory float64, of func(heapPoint) float64) float64 {
	front = slices.Clone(front)
	slices.SortStableFunc(front, func(a, b heapPoint) int {
		return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(b.collector, a.collector))
	})
	least := math.Inf(1)
	for i, p := range front {
		least = min(least, p.collector) // more memory may always be left unused
		front[i].collector = least
	}
	i := slices.IndexFunc(front, func(p heapPoint) bool { return of(p) >= memory })
	switch {
	case i < 0:
		return math.NaN()
	case of(front[i]) == memory:
		return front[i].collector
	case i == 0:
		return math.NaN()
	}
	a, b := front[i-1], front[i]
	part := math.Log(memory/of(a)) / math.Log(of(b)/of(a))
	return a.collector * math.Pow(b.collector/a.collector, part)
}

var heapMeasures = []struct {
	name string
	of   func(heapPoint) float64
}{
	{"mean of the sum / of reachable bytes", func(p heapPoint) float64 { return p.mean }},
	{"peak of the sum / the least", func(p heapPoint) float64 { return p.peak }},
}

// reportHeaps compares the fronts with that of the bound, draw by draw.
func reportHeaps(loads int, points []heapPoint) (folder, error) {
	var r markdown
	fmt.Fprintf(&r, `# Several heaps under one budget

%d recordings, %d draws for each number of heaps. The best static split is found for a price of memory. The other rules get as much memory as it takes at that price. The figures are their collector
time as a factor of that of the best split: geometric mean over the draws, and its 95 %% interval (bootstrap). A draw is left out where a rule has no setting with so much memory.
`, loads, heapSeeds)
	bound := heapRules[0].name
	for _, measure := range heapMeasures {
		for _, count := range heapCounts {
			var columns []string
			for _, price := range heapPrices {
				var memory []float64
				for seed := range uint64(heapSeeds) {
					memory = append(memory, measure.of(priced(frontOf(points, bound, count, seed), price)))
				}
				columns = append(columns, fmt.Sprintf("%g, %.2fx", price, experiment.GeometricMean(memory)))
			}
			fmt.Fprintf(&r, "\n## %d heaps, memory: %s\n\n", count, measure.name)
			r.table("price, memory", columns, ruleNames(), func(row, column int) any {
				var ratios []float64
				for seed := range uint64(heapSeeds) {
					best := priced(frontOf(points, bound, count, seed), heapPrices[column])
					if x := at(frontOf(points, heapRules[row].name, count, seed), measure.of(best), measure.of) / best.collector; x > 0 && !math.IsInf(x, 0) {
						ratios = append(ratios, x)
					}
				}
				return intervalText(ratios)
			})
		}
	}
	var curves []curve
	for _, rule := range heapRules {
		c := curve{Name: strings.ReplaceAll(rule.name, "`", "")}
		for _, memory := range []float64{1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6} {
			var times []float64
			for seed := range uint64(heapSeeds) {
				if x := at(frontOf(points, rule.name, 8, seed), memory, heapMeasures[0].of) / at(frontOf(points, bound, 8, seed), 4, heapMeasures[0].of); x > 0 {
					times = append(times, x)
				}
			}
			if len(times) >= heapSeeds/2 {
				c.X, c.Y = append(c.X, memory), append(c.Y, experiment.GeometricMean(times))
			}
		}
		curves = append(curves, c)
	}
	picture, err := drawCurves("mean of the sum of live bytes / of reachable bytes", "collector time / that of the best static split at 4", []float64{1, 1.5, 2, 3, 4, 6}, []float64{0.2, 0.5, 1, 2, 5, 10, 20}, curves)
	csv := bytes.NewBufferString("rule,heaps,seed,value,peak,mean,collector_s\n")
	for _, p := range points {
		fmt.Fprintf(csv, "%q,%d,%d,%g,%.4f,%.4f,%.4f\n", p.rule, p.count, p.seed, p.value, p.peak, p.mean, p.collector)
	}
	return folder{"report.md": r.Bytes(), "points.csv": csv.Bytes(), "fronts.svg": picture}, err
}

func frontOf(points []heapPoint, rule string, count int, seed uint64) (front []heapPoint) {
	for _, p := range points {
		if p.rule == rule && p.count == count && p.seed == seed {
			front = append(front, p)
		}
	}
	return front
}

// priced returns the point of a front at a price.
func priced(front []heapPoint, price float64) heapPoint {
	return front[slices.IndexFunc(front, func(p heapPoint) bool { return p.value == price })]
}

func ruleNames() (names []string) {
	for _, r := range heapRules {
		names = append(names, r.name)
	}
	return names
}

// intervalText returns the geometric mean of ratios, its 95 % interval, and their number if some are
// missing.
func intervalText(ratios []float64) string {
	if len(ratios) == 0 {
		return ""
	}
	lot := rand.New(rand.NewPCG(1, 1))
	var means []float64
	for range 1000 {
		sample := make([]float64, len(ratios))
		for i := range sample {
			sample[i] = ratios[lot.IntN(len(ratios))]
		}
		means = append(means, experiment.GeometricMean(sample))
	}
	slices.Sort(means)
	text := fmt.Sprintf("%.2f (%.2f to %.2f)", experiment.GeometricMean(ratios), means[25], means[975])
	if len(ratios) < heapSeeds {
		text += fmt.Sprintf(", %d draws", len(ratios))
	}
	return text
}
