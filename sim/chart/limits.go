package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/eagergc/eagergc/sim"
)

// Limits draws exposed pause (upper panels) and collections (lower panels)
// against the limit factor, a column for each trace. Results are of one cost;
// their order is that of the columns and of the legend.
func Limits(title, note string, results []sim.Result, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 200, height: 190, panels: make([][]*plot.Plot, 2)}
	var traces, policies []string
	for _, r := range results {
		if !slices.Contains(traces, r.Trace) {
			traces = append(traces, r.Trace)
		}
		if !slices.Contains(policies, r.Policy) {
			policies = append(policies, r.Policy)
		}
	}
	c.width = max(c.width, 600/vg.Length(max(1, len(traces)))) // room for the title and the legend
	for _, t := range traces {
		of := slices.DeleteFunc(slices.Clone(results), func(r sim.Result) bool { return r.Trace != t })
		pause, count := limitPanels(t, of, policies, palette)
		c.panels[0] = append(c.panels[0], pause)
		c.panels[1] = append(c.panels[1], count)
	}
	for _, name := range policies {
		l := palette.of(name)
		c.keys = append(c.keys, key{text: name, line: l.line, shape: l.shape})
	}
	return c
}

// limitPanels draws the two panels of one trace.
func limitPanels(trace string, results []sim.Result, policies []string, palette Palette) (pause, count *plot.Plot) {
	var factors []float64
	var longest time.Duration
	for _, r := range results {
		if !slices.Contains(factors, r.LimitFactor) {
			factors = append(factors, r.LimitFactor)
		}
		longest = max(longest, r.ExposedPause)
	}
	slices.Sort(factors)
	clock := timeUnit(longest)
	var pauses, cycles []float64
	for _, r := range results {
		pauses = append(pauses, float64(r.ExposedPause)/clock.size)
		cycles = append(cycles, float64(r.Collections+r.RefusalCollections))
	}
	pause = newPanel(trace, "limit / peak reachable", fmt.Sprintf("exposed pause (%s)", clock.name))
	count = newPanel("", "limit / peak reachable", "collections")
	drawLimits(pause, results, pauses, policies, palette)
	drawLimits(count, results, cycles, policies, palette)
	for _, p := range []*plot.Plot{pause, count} {
		p.X.Min, p.X.Max = math.Log10(factors[0]*0.95), math.Log10(factors[len(factors)-1]*1.05)
		p.X.Tick.Marker = logTicksAt(rounded(factors), "x")
	}
	return pause, count
}

// drawLimits draws values, one for each result, as a line for each policy.
func drawLimits(p *plot.Plot, results []sim.Result, values []float64, policies []string, palette Palette) {
	place := logFromZero(&p.Y, values)
	var lines []*plotter.Line
	var marks []plot.Plotter
	for _, name := range policies {
		var xys plotter.XYs
		for i, r := range results {
			if r.Policy == name {
				xys = append(xys, plotter.XY{X: math.Log10(r.LimitFactor), Y: place(values[i])})
			}
		}
		slices.SortFunc(xys, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		l := palette.of(name)
		lines = append(lines, &plotter.Line{XYs: xys, LineStyle: l.line})
		marks = append(marks, &plotter.Scatter{XYs: xys, GlyphStyle: glyph(l.line, l.shape)})
	}
	addLines(p, lines)
	p.Add(marks...)
}

// rounded drops what flooring a limit to whole bytes did to its factor.
func rounded(factors []float64) []float64 {
	out := make([]float64, len(factors))
	for i, f := range factors {
		out[i] = math.Round(f*1e4) / 1e4
	}
	return out
}
