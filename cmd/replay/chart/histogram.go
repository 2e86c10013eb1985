//go:build !js

package chart

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/sim"
)

// counted is the policy of a run and how many pauses it had.
func counted(r Run) string {
	if len(r.Log.Pauses) == 1 {
		return r.Result.Policy + ": 1 pause"
	}
	return fmt.Sprintf("%s: %d pauses", r.Result.Policy, len(r.Log.Pauses))
}

// pauseHistogram draws how many exposed pauses of which length each run had, a
// panel for each. Ten bins make a decade.
func pauseHistogram(title, note string, runs []Run, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 560, height: 90}
	least, most := pauseRange(runs)
	bins := int(math.Round(10 * math.Log10(float64(most)/float64(least))))
	half := math.Pow(10, -0.05) // a bin stands around its value, not beside it
	edges := sim.Windows(time.Duration(float64(least)*half), time.Duration(float64(most)*half), bins+1)
	for i, r := range runs {
		x := ""
		if i == len(runs)-1 {
			x = "exposed pause"
		}
		p := newPanel(counted(r), x, "pauses")
		height := make([]float64, bins)
		highest := 1.0
		for _, pause := range r.Log.Pauses {
			at := math.Log10(float64(pause.Length)/float64(least)) * 10
			k := min(bins-1, max(0, int(math.Round(at))))
			height[k]++
			highest = max(highest, height[k])
		}
		for k, n := range height {
			if n > 0 {
				p.Add(bar(logTime(edges[k]), logTime(edges[k+1]), n, palette.of(r.Result.Policy)))
			}
		}
		logTimeAxis(&p.X, least, most)
		p.Y.Min, p.Y.Max = 0, highest*1.05
		p.Y.Tick.Marker = linearTicks(3)
		c.panels = append(c.panels, []*plot.Plot{p})
	}
	return c
}

func bar(x0, x1, n float64, l look) plot.Plotter {
	return &plotter.Polygon{XYs: []plotter.XYs{{{X: x0, Y: 0}, {X: x1, Y: 0}, {X: x1, Y: n}, {X: x0, Y: n}}},
		Color: l.Light, LineStyle: draw.LineStyle{Color: white, Width: 0.5}}
}

// pauseRange returns whole decades around the pauses of all runs.
func pauseRange(runs []Run) (least, most time.Duration) {
	least, most = time.Hour, time.Microsecond
	for _, r := range runs {
		for _, p := range r.Log.Pauses {
			least, most = min(least, p.Length), max(most, p.Length)
		}
	}
	least = max(least, most/1000, time.Microsecond)
	decade := func(d time.Duration, round func(float64) float64) time.Duration {
		return time.Duration(math.Round(math.Pow(10, round(math.Log10(float64(d))))))
	}
	least, most = decade(least*9/10, math.Floor), decade(most*11/10, math.Ceil)
	return least, max(most, 10*least)
}
