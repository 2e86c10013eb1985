package chart

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/eagergc/eagergc/cmd/replay/view"
)

// An Overhead is the lower-bound overhead of a policy at one limit.
type Overhead = view.Overhead

// LBO draws lower-bound overheads against the limit factor: of elapsed time on
// the left, of processor time on the right.
func LBO(title, note string, all []Overhead, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 360, height: 260}
	var policies []string
	var factors []float64
	for _, o := range all {
		if !slices.Contains(policies, o.Policy) {
			policies = append(policies, o.Policy)
			l := lookOf(palette, o.Policy)
			c.keys = append(c.keys, key{text: o.Policy, line: l.line(), shape: l.shape()})
		}
		if !slices.Contains(factors, o.Factor) {
			factors = append(factors, o.Factor)
		}
	}
	slices.Sort(factors)
	panel := func(name string, of func(*Overhead) float64) *plot.Plot {
		p := newPanel(name, "limit / peak reachable", "overhead, times the least")
		var lines []labelled
		least, most := 1.0, 1.01
		for _, name := range policies {
			var xys plotter.XYs
			for i, o := range all {
				if o.Policy == name {
					xys = append(xys, plotter.XY{X: math.Log10(o.Factor), Y: math.Log10(of(&all[i]))})
					most = max(most, of(&all[i]))
				}
			}
			slices.SortFunc(xys, func(a, b plotter.XY) int { return int(math.Copysign(1, a.X-b.X)) })
			l := lookOf(palette, name)
			lines = append(lines, labelled{&plotter.Line{XYs: xys, LineStyle: l.line()}, name})
		}
		addLabelled(p, lines)
		if len(factors) > 0 {
			p.X.Min, p.X.Max = math.Log10(factors[0]*0.98), math.Log10(factors[len(factors)-1]*1.02)
		}
		p.X.Tick.Marker = logTicksAt(rounded(factors), "x")
		p.Y.Min, p.Y.Max = math.Log10(least), math.Log10(most*1.01)
		p.Y.Tick.Marker = overheadTicks(most)
		return p
	}
	c.panels = [][]*plot.Plot{{
		panel("elapsed time", func(o *Overhead) float64 { return o.Wall }),
		panel("processor time", func(o *Overhead) float64 { return o.Processor }),
	}}
	return c
}

// overheadTicks marks an axis of logarithms of ratios from 1 to most.
func overheadTicks(most float64) plot.ConstantTicks {
	if most > 3 {
		return plot.ConstantTicks(logTicks(1, most))
	}
	var values []float64
	for _, t := range linearTicks(5)(1, most) {
		values = append(values, t.Value)
	}
	return logTicksAt(values, "")
}
