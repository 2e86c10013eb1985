//go:build !js

package chart

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A labelled line has its name at its right end, beside the panel.
type labelled struct {
	*plotter.Line
	name string
}

// mostLabels is how many names find room beside a panel.
const mostLabels = 12

// addLabelled draws lines and, if there are few enough, their names.
func addLabelled(p *plot.Plot, lines []labelled) {
	for _, dashed := range []bool{false, true} { // over solid lines that coincide with them
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

// labels writes the names of lines beside the panel, each as near to the end of
// its line as the others let it.
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
	for i := 1; i < len(all); i++ { // from the top: push down what is too near
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

// GlyphBoxes implements [plot.GlyphBoxer]: it keeps room for the names.
func (ls labels) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	var widest vg.Length
	for _, l := range ls {
		widest = max(widest, style(8).Width(l.name))
	}
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: widest + 8}}}}
}
