//go:build !js

package chart

import (
	"fmt"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/eagergc/eagergc/sim"
)

// A Curve is memory over time.
type Curve struct {
	Name   string
	Levels []sim.Level // in order of time; Live without Garbage is drawn
}

// Curves draws curves in one panel.
func Curves(title, note string, curves []Curve) *Chart {
	c := &Chart{title: title, note: note, width: 640, height: 300}
	var most int64
	var end time.Duration
	for _, k := range curves {
		for _, l := range k.Levels {
			most, end = max(most, l.Live-l.Garbage), max(end, l.At)
		}
	}
	mem, clock := bytesUnit(most), timeUnit(end)
	p := newPanel("", fmt.Sprintf("time (%s)", clock.name), fmt.Sprintf("memory (%s)", mem.name))
	var names []string
	for _, k := range curves {
		names = append(names, k.Name)
	}
	palette := NewPalette(names) // not of policies, so in order
	for _, k := range curves {
		xys := make(plotter.XYs, len(k.Levels))
		for j, l := range k.Levels {
			xys[j] = plotter.XY{X: float64(l.At) / clock.size, Y: float64(l.Live-l.Garbage) / mem.size}
		}
		look := palette.of(k.Name)
		style := look.line()
		style.Width = 0.8
		p.Add(&plotter.Line{XYs: xys, LineStyle: style, StepStyle: plotter.PostStep})
		c.keys = append(c.keys, key{text: k.Name, line: style})
	}
	p.X.Min, p.X.Max = 0, max(float64(end)/clock.size, 1)
	p.Y.Min, p.Y.Max = 0, max(1.05*float64(most)/mem.size, 1)
	p.X.Tick.Marker = linearTicks(10)
	c.panels = [][]*plot.Plot{{p}}
	return c
}
