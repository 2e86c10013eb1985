package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// A Distribution says at most how much each share of some jobs loses under a policy.
type Distribution struct {
	Policy string
	Lost   []float64 // share of the recorded time, sorted
	Jobs   []float64 // share of the jobs that lose at most that
}

// Distributions draws the share of jobs against the time that they lose.
func Distributions(title, note string, all []Distribution, palette Palette) *Chart {
	const least = 1e-4 // what is below is drawn there
	c := &Chart{title: title, note: note, width: 640, height: 300}
	p := newPanel("", "time lost, share of the recorded time", "share of the jobs")
	most := 1.0
	var lines []labelled
	for _, d := range all {
		l := lookOf(palette, d.Policy)
		c.keys = append(c.keys, key{text: d.Policy, line: l.line()})
		xys := plotter.XYs{{X: math.Log10(least), Y: 0}}
		for i, x := range d.Lost {
			most = max(most, x)
			xys = append(xys, plotter.XY{X: math.Log10(max(least, x)), Y: d.Jobs[i]})
		}
		lines = append(lines, labelled{&plotter.Line{XYs: xys, LineStyle: l.line(), StepStyle: plotter.PostStep}, d.Policy})
	}
	for _, l := range lines {
		p.Add(l.Line)
	}
	p.X.Min, p.X.Max = math.Log10(least), math.Log10(most*1.05)
	p.X.Tick.Marker = plot.ConstantTicks(logTicks(least, most))
	p.Y.Min, p.Y.Max = 0, 1
	c.panels = [][]*plot.Plot{{p}}
	return c
}
