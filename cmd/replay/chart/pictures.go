//go:build !js

package chart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A Picture is a chart and the stem of its file name.
type Picture struct {
	Stem  string
	Chart *Chart
}

// Typical returns the detailed cell of a workload: the middle limit, or the tighter of the two
// in the middle, and the last cost.
func Typical(g *experiment.Grid, workload int) experiment.Cell {
	return experiment.Cell{Workload: workload, Limit: (len(g.Limits) - 1) / 2, Cost: len(g.Costs) - 1}
}

// OfGrid returns the pictures of a grid that has run. For each cost it draws the limits, the
// Pareto front and the overheads. For each workload it draws the [Typical] cell as [OfCell]
// does.
func OfGrid(g *experiment.Grid) []Picture {
	colours, limit := NewPalette(Names(g)), Typical(g, 0).Limit
	workloads := make([]int, len(g.Workloads))
	var all []Picture
	for i := range workloads {
		workloads[i] = i
	}
	for j, cost := range g.Costs {
		finished := g.Finished(j)
		if len(finished) == 0 {
			continue
		}
		name := experiment.CostName(cost)
		note, stem := name+", ladder "+g.Ladder.String(), Stem(name)
		atLimit := slices.DeleteFunc(slices.Clone(finished), func(r sim.Result) bool {
			return !slices.ContainsFunc(g.Workloads, func(w *sim.Workload) bool { return w.Name == r.Trace && g.Limits[limit].Of(w) == r.LimitBytes })
		})
		all = append(all,
			Picture{"limits-" + stem, limitsChart(note, finished, colours)},
			Picture{"front-" + stem, columnCharts("Pareto front of exposed pause and collector time", fmt.Sprintf("limit %s, %s", g.Limits[limit], note), 230, atLimit, colours, frontFigure)},
			Picture{"lbo-" + stem, lineCharts("Lower-bound overhead, "+meanOver(g), note, 360, 260, colours, [][]LineChart{lboFigure(overheads(g, j, workloads)).Data})})
	}
	for i := range g.Workloads {
		all = append(all, OfCell(g, Typical(g, i))...)
	}
	return all
}

// limitsChart draws exposed pause and collections against the limit, of results at one cost.
func limitsChart(note string, results []sim.Result, palette Palette) *Chart {
	return columnCharts("Exposed pause and collections against the limit", note, 190, results, palette, func(of []sim.Result) Figure { return limitsFigure(of, 0) })
}

// memorySlots is the number of levels of a memory chart, whose panels are 640 points wide.
const memorySlots = 400

// OfCell replays a cell under each contender, and draws memory, pauses and utilization.
func OfCell(g *experiment.Grid, at experiment.Cell) []Picture {
	runs, note := LogRuns(g, at, memorySlots, false), cellNote(g, at)
	if len(runs) == 0 {
		return nil
	}
	colours, stem := NewPalette(Names(g)), Stem(g.Workloads[at.Workload].Name)
	return []Picture{
		{"memory-" + stem, memoryChart("Live memory and collections over time", note, runs, colours)},
		{"pauses-" + stem, lineCharts("How long the program was held", note, 600, 300, colours, [][]LineChart{pausesFigure(runs).Data})},
		{"mmu-" + stem, lineCharts("Minimum mutator utilization", note, 600, 300, colours, [][]LineChart{mmuFigure(runs).Data})},
	}
}

func cellNote(g *experiment.Grid, at experiment.Cell) string {
	w, l := g.Workloads[at.Workload], g.Limits[at.Limit]
	return fmt.Sprintf("%s, limit %s (%s), %s, ladder %s", w.Name, l, pressure.Bytes(l.Of(w)), experiment.CostName(g.Costs[at.Cost]), g.Ladder)
}

// Stem turns a text into a part of a file name: letters, digits, dots and dashes.
func Stem(text string) string {
	stem := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, text)
	return strings.TrimLeft(stem, ".")
}
