package chart

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/cmd/replay/view"
	"github.com/eagergc/eagergc/sim"
)

// Limits draws exposed pause, as a share of the recorded time (upper panels),
// and collections (lower panels) against the limit factor, a column for each
// trace, five to a row. Results are of one cost; their order is that of the
// columns and of the legend.
func Limits(title, note string, results []sim.Result, palette Palette) *Chart {
	c, traces := newColumns(title, note, results, palette)
	for _, row := range rowsOf(traces) {
		pauses, counts := make([]*plot.Plot, len(row)), make([]*plot.Plot, len(row))
		for i, t := range row {
			if t != "" {
				pauses[i], counts[i] = limitPanels(t, ofTrace(results, t), palette)
			}
		}
		c.panels = append(c.panels, pauses, counts)
	}
	return c
}

// rowsOf breaks the traces into rows of at most five panels, all of one length:
// the last is filled up with nothing.
func rowsOf(traces []string) [][]string {
	rows := max(1, (len(traces)+4)/5)
	length := max(1, (len(traces)+rows-1)/rows)
	traces = append(traces, make([]string, rows*length-len(traces))...)
	return slices.Collect(slices.Chunk(traces, length))
}

// newColumns returns a chart with a column for each trace, and the traces.
func newColumns(title, note string, results []sim.Result, palette Palette) (*Chart, []string) {
	c := &Chart{title: title, note: note, width: 200, height: 190}
	var traces, policies []string
	for _, r := range results {
		if !slices.Contains(traces, r.Trace) {
			traces = append(traces, r.Trace)
		}
		if !slices.Contains(policies, r.Policy) {
			policies = append(policies, r.Policy)
		}
	}
	c.width = max(c.width, 600/vg.Length(len(rowsOf(traces)[0]))) // room for the title and the legend
	for _, name := range policies {
		l := lookOf(palette, name)
		c.keys = append(c.keys, key{text: name, line: l.line(), shape: l.shape()})
	}
	return c, traces
}

func ofTrace(results []sim.Result, trace string) []sim.Result {
	return slices.DeleteFunc(slices.Clone(results), func(r sim.Result) bool { return r.Trace != trace })
}

// percentOf is a duration of a run in percent of the recorded time: comparable
// between runs that were held for different times.
func percentOf(part, span float64) float64 { return 100 * part / max(1, span) }

func exposedPercent(r *sim.Result) float64 {
	return percentOf(float64(r.ExposedPause), float64(r.Span))
}
func busyPercent(r *sim.Result) float64 { return percentOf(float64(r.GCBusy), float64(r.Span)) }

// limitPanels draws the two panels of one trace.
func limitPanels(trace string, results []sim.Result, palette Palette) (pause, count *plot.Plot) {
	var factors, pauses, cycles []float64
	for _, r := range results {
		if !slices.Contains(factors, r.LimitFactor) {
			factors = append(factors, r.LimitFactor)
		}
		pauses = append(pauses, exposedPercent(&r))
		cycles = append(cycles, float64(r.Collections+r.RefusalCollections))
	}
	slices.Sort(factors)
	pause = newPanel(trace, "limit / peak reachable", "exposed pause (% of recorded time)")
	count = newPanel("", "limit / peak reachable", "collections")
	drawLimits(pause, results, pauses, palette)
	drawLimits(count, results, cycles, palette)
	for _, p := range []*plot.Plot{pause, count} {
		p.X.Min, p.X.Max = math.Log10(factors[0]*0.95), math.Log10(factors[len(factors)-1]*1.05)
		p.X.Tick.Marker = logTicksAt(rounded(factors), "x")
	}
	return pause, count
}

// drawLimits draws values, one for each result, as a line for each policy.
func drawLimits(p *plot.Plot, results []sim.Result, values []float64, palette Palette) {
	place := logFromZero(&p.Y, values)
	var lines []*plotter.Line
	var marks []plot.Plotter
	drawn := make(map[string]bool)
	for _, one := range results {
		if drawn[one.Policy] {
			continue
		}
		drawn[one.Policy] = true
		var xys plotter.XYs
		for i, r := range results {
			if r.Policy == one.Policy {
				xys = append(xys, plotter.XY{X: math.Log10(r.LimitFactor), Y: place(values[i])})
			}
		}
		slices.SortFunc(xys, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		l := lookOf(palette, one.Policy)
		lines = append(lines, &plotter.Line{XYs: xys, LineStyle: l.line()})
		marks = append(marks, &plotter.Scatter{XYs: xys, GlyphStyle: l.glyph()})
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

// Front draws the Pareto front of exposed pause against collector time, a panel
// for each trace, both as shares of the recorded time. Results are of one limit
// and one cost. The front joins the policies that no other beats in one without
// losing in the other; the optima know the recording, so they are drawn, and
// are not of the front.
func Front(title, note string, results []sim.Result, palette Palette) *Chart {
	c, traces := newColumns(title, note, results, palette)
	c.height = 230
	for _, row := range rowsOf(traces) {
		panels := make([]*plot.Plot, len(row))
		for i, t := range row {
			if t != "" {
				panels[i] = frontPanel(t, ofTrace(results, t), palette)
			}
		}
		c.panels = append(c.panels, panels)
	}
	c.keys = append(c.keys, key{text: "front", line: frontLine})
	return c
}

var frontLine = draw.LineStyle{Color: black, Width: 0.7}

func frontPanel(trace string, results []sim.Result, palette Palette) *plot.Plot {
	p := newPanel(trace, "collector time (% of recorded time)", "exposed pause (% of recorded time)")
	var busy, exposed []float64
	for i := range results {
		busy = append(busy, busyPercent(&results[i]))
		exposed = append(exposed, exposedPercent(&results[i]))
	}
	x, y := logFromZero(&p.X, busy), logFromZero(&p.Y, exposed)
	var front plotter.XYs
	for _, i := range view.FrontOf(results) {
		front = append(front, plotter.XY{X: x(busy[i]), Y: y(exposed[i])})
	}
	if n := len(front); n > 0 { // from the top edge to the right one: what lies above is beaten
		front = slices.Concat(plotter.XYs{{X: front[0].X, Y: p.Y.Max}}, front, plotter.XYs{{X: p.X.Max, Y: front[n-1].Y}})
	}
	p.Add(&plotter.Line{XYs: front, LineStyle: frontLine, StepStyle: plotter.PostStep})
	for i, r := range results {
		l := lookOf(palette, r.Policy)
		g := l.glyph()
		g.Radius = 4
		p.Add(&plotter.Scatter{XYs: plotter.XYs{{X: x(busy[i]), Y: y(exposed[i])}}, GlyphStyle: g})
	}
	return p
}
