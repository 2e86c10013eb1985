//go:build !js

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
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/sim"
)

// columnCharts draws the charts of each trace below each other, in rows of five traces. Results
// have one cost; their order is the order of columns and legend.
func columnCharts(title, note string, height vg.Length, results []sim.Result, palette Palette, of func([]sim.Result) Figure) *Chart {
	var all [][]LineChart // of each trace
	for rest := results; len(rest) > 0; {
		trace := rest[0].Trace
		other := func(r sim.Result) bool { return r.Trace != trace }
		one := of(slices.DeleteFunc(slices.Clone(rest), other)).Data
		one[0].title = trace
		all = append(all, one)
		rest = slices.DeleteFunc(slices.Clone(rest), func(r sim.Result) bool { return !other(r) })
	}
	rows := max(1, (len(all)+4)/5)
	length := max(1, (len(all)+rows-1)/rows)
	var charts [][]LineChart
	for some := range slices.Chunk(all, length) {
		for k := range some[0] {
			row := make([]LineChart, length)
			for i, one := range some {
				row[i] = one[k]
			}
			charts = append(charts, row)
		}
	}
	return lineCharts(title, note, max(200, 600/vg.Length(length)), height, palette, charts)
}

// lineCharts draws rows of panels. A chart without lines leaves its panel empty.
func lineCharts(title, note string, width, height vg.Length, palette Palette, rows [][]LineChart) *Chart {
	c := &Chart{title: title, note: note, width: width, height: height}
	known := make(map[string]bool)
	for _, row := range rows {
		panels := make([]*plot.Plot, len(row))
		for i, l := range row {
			if len(l.Lines) == 0 {
				continue
			}
			panels[i] = l.panel(palette, len(rows) == 1)
			for _, line := range l.Lines {
				if look := palette.of(line.policy); !known[line.policy] {
					known[line.policy] = true
					k := key{text: line.policy, line: look.line()}
					if l.Dots {
						k.shape = look.shape()
					}
					c.keys = append(c.keys, k)
				}
			}
			if l.Front != nil && !known["front"] {
				known["front"] = true
				defer func() { c.keys = append(c.keys, key{text: "front", line: frontLine}) }()
			}
		}
		c.panels = append(c.panels, panels)
	}
	return c
}

var frontLine = draw.LineStyle{Color: black, Width: 0.7}

// panel draws a chart. If named, the names of the lines are beside it.
func (l *LineChart) panel(palette Palette, named bool) *plot.Plot {
	p := newPanel(l.title, l.X.Label, l.Y.Label)
	var xs, ys []float64
	for _, line := range l.Lines {
		for i, y := range line.Y {
			if y != nil {
				xs, ys = append(xs, line.X[i]), append(ys, *y)
			}
		}
	}
	x, y := l.X.on(&p.X, xs), l.Y.on(&p.Y, ys)
	var lines []labelled
	var marks []plot.Plotter
	for _, line := range l.Lines {
		look := palette.of(line.policy)
		var xys plotter.XYs
		for i, v := range line.Y {
			if v != nil {
				xys = append(xys, plotter.XY{X: x(line.X[i]), Y: y(*v)})
			}
		}
		if len(xys) == 0 {
			continue
		}
		slices.SortStableFunc(xys, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		of := &plotter.Line{XYs: xys, LineStyle: look.line()}
		if l.Step {
			of.StepStyle = plotter.PostStep
		}
		lines = append(lines, labelled{of, line.policy})
		if l.Dots {
			marks = append(marks, &plotter.Scatter{XYs: xys, GlyphStyle: glyph(look.line(), look.shape())})
		}
	}
	if l.Front != nil {
		var front plotter.XYs
		for i, at := range l.Front[0] {
			front = append(front, plotter.XY{X: x(at), Y: y(l.Front[1][i])})
		}
		if n := len(front); n > 0 { // from the top edge to the right one: what lies above is beaten
			front = slices.Concat(plotter.XYs{{X: front[0].X, Y: p.Y.Max}}, front, plotter.XYs{{X: p.X.Max, Y: front[n-1].Y}})
		}
		p.Add(&plotter.Line{XYs: front, LineStyle: frontLine, StepStyle: plotter.PostStep})
		named = false // points
	}
	if named {
		addLabelled(p, lines)
	} else {
		for _, l := range lines {
			p.Add(l.Line)
		}
	}
	p.Add(marks...)
	return p
}

// on makes a an axis of values, and returns a function for the places of values on it.
func (x *axis) on(a *plot.Axis, values []float64) (place func(float64) float64) {
	least, most := 0.0, 1.0
	switch {
	case x.Range != nil:
		least, most = x.Range[0], x.Range[1]
	case len(values) > 0:
		least, most = slices.Min(values), slices.Max(values)
	}
	switch {
	case x.Zero > 0: // logarithmic, with a place for 0 at the bottom
		foot := x.Zero / 3
		a.Min, a.Max = math.Log10(foot), math.Log10(max(most, x.Zero*1.3))
		a.Tick.Marker = append(plot.ConstantTicks(logTicks(x.Zero/1.2, most)), plot.Tick{Value: a.Min, Label: "0"})
		return func(v float64) float64 { return math.Log10(max(v, foot)) }
	case x.Log && x.Unit == "s":
		if x.Range == nil { // whole decades, three at least
			most = math.Pow(10, math.Ceil(math.Log10(max(most, 1e-6)*1.1)))
			least = max(math.Pow(10, math.Floor(math.Log10(max(least, 1e-6)*0.9))), most/1e4, 1e-6)
		}
		logTimeAxis(a, time.Duration(least*1e9), time.Duration(max(most, 10*least)*1e9))
		return func(v float64) float64 { return math.Log10(max(v, least)) }
	case x.Log:
		a.Min, a.Max = math.Log10(least), math.Log10(most)
		a.Tick.Marker = plot.ConstantTicks(logTicks(least, most))
		if x.Ticks != nil {
			a.Tick.Marker = logTicksAt(x.Ticks, x.Unit)
		}
		return math.Log10
	case x.Unit == "nines":
		a.Tick.Marker = percentileTicks(most)
	}
	a.Min, a.Max = least, most
	if a.Min == a.Max {
		a.Max++
	}
	return func(v float64) float64 { return v }
}

// percentileTicks marks 0, 50, 90, 99, 99.9 ... %, up to a number of nines.
func percentileTicks(right float64) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 0, Label: "0%"}, {Value: math.Log10(2), Label: "50%"}, {Value: math.Log10(4), Label: "75%"}}
	for k := 1.0; k <= right; k++ {
		ticks = append(ticks, plot.Tick{Value: k, Label: fmt.Sprintf("%g%%", 100-math.Pow(10, 2-k))})
	}
	return ticks
}

// A labelled line has its name at its right end, beside the panel.
type labelled struct {
	*plotter.Line
	name string
}

// mostLabels is the number of names that fit beside a panel.
const mostLabels = 12

// addLabelled draws lines and, if there are not too many, their names.
func addLabelled(p *plot.Plot, lines []labelled) {
	for _, dashed := range []bool{false, true} { // dashed lines over solid lines at the same place
		for _, l := range lines {
			if (l.Dashes != nil) == dashed {
				p.Add(l.Line)
			}
		}
	}
	if len(lines) <= mostLabels {
		p.Add(labels(lines))
	}
}

// labels writes the names of lines beside the panel, each as near to the end of its line as
// possible.
type labels []labelled

const labelLeading = vg.Length(9.5)

// Plot implements [plot.Plotter].
func (ls labels) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	type place struct {
		labelled
		y vg.Length
	}
	var all []place
	for _, l := range ls {
		if n := len(l.XYs); n > 0 {
			at := min(max(l.XYs[n-1].Y, p.Y.Min), p.Y.Max)
			all = append(all, place{l, y(at)})
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return int(b.y-a.y) * 1000 })
	for i := 1; i < len(all); i++ { // from the top: push a label down that is too near
		all[i].y = min(all[i].y, all[i-1].y-labelLeading)
	}
	floor := c.Min.Y - 6
	for i := len(all) - 1; i >= 0; i-- { // from the foot: push up what fell off
		all[i].y = max(all[i].y, floor)
		floor = all[i].y + labelLeading
	}
	for _, l := range all {
		s := style(8)
		s.Color = l.LineStyle.Color
		c.FillText(s, vg.Point{X: c.Max.X + 5, Y: l.y}, l.name)
	}
}

// GlyphBoxes implements [plot.GlyphBoxer]. It reserves room for the names.
func (ls labels) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	var wide vg.Length
	for _, l := range ls {
		wide = max(wide, widest*style(8).Width(l.name))
	}
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: wide + 8}}}}
}
