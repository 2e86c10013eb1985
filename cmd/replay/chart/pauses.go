package chart

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/cmd/replay/view"
	"github.com/eagergc/eagergc/sim"
)

// Pauses draws the lengths of exposed pauses by percentile, on the axis of
// HdrHistogram's plots: 90 %, 99 %, 99.9 % are as far apart as 0 % and 90 %. The
// line of a run ends at its longest pause; n pauses tell nothing beyond the
// percentile 1 - 1/n.
func Pauses(title, note string, runs []Run, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 600, height: 300}
	least, most := pauseRange(runs)
	p := newPanel("", "percentile of the pauses", "exposed pause")
	var lines []labelled
	right := 2.0 // 99 %
	for _, r := range runs {
		l := lookOf(palette, r.Result.Policy)
		c.keys = append(c.keys, key{text: counted(r), line: l.line()})
		q := view.Quantiles(r.Log)
		if len(q) == 0 {
			continue
		}
		xys := make(plotter.XYs, len(q))
		for i, x := range q {
			xys[i] = plotter.XY{X: x.Nines, Y: logTime(max(least, x.Pause))}
		}
		right = max(right, xys[len(xys)-1].X)
		lines = append(lines, labelled{&plotter.Line{XYs: xys, LineStyle: l.line(), StepStyle: plotter.PostStep}, r.Result.Policy})
	}
	addLabelled(p, lines)
	p.X.Min, p.X.Max = 0, right
	p.X.Tick.Marker = percentileTicks(right)
	logTimeAxis(&p.Y, least, most)
	c.panels = [][]*plot.Plot{{p}}
	return c
}

// percentileTicks marks 0, 50, 90, 99, 99.9 ... % up to a number of nines.
func percentileTicks(right float64) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 0, Label: "0%"}, {Value: math.Log10(2), Label: "50%"}, {Value: math.Log10(4), Label: "75%"}}
	for k := 1.0; k <= right; k++ {
		ticks = append(ticks, plot.Tick{Value: k, Label: fmt.Sprintf("%g%%", 100-math.Pow(10, 2-k))})
	}
	return ticks
}

// counted is the policy of a run and how many pauses it had.
func counted(r Run) string {
	if len(r.Log.Pauses) == 1 {
		return r.Result.Policy + ": 1 pause"
	}
	return fmt.Sprintf("%s: %d pauses", r.Result.Policy, len(r.Log.Pauses))
}

// PauseHistogram draws how many exposed pauses of which length each run had, a
// panel for each. Ten bins make a decade.
func PauseHistogram(title, note string, runs []Run, palette Palette) *Chart {
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
				p.Add(bar(logTime(edges[k]), logTime(edges[k+1]), n, lookOf(palette, r.Result.Policy)))
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

// MMU draws the minimum mutator utilization of runs against the window.
func MMU(title, note string, runs []Run, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 600, height: 300}
	p := newPanel("", "window", "share of the window that the program ran (%)")
	windows := view.MMUWindows(runs)
	var lines []labelled
	for _, r := range runs {
		l := lookOf(palette, r.Result.Policy)
		xys := make(plotter.XYs, len(windows))
		for i, u := range r.Log.MMU(r.Result.Elapsed, windows) {
			xys[i] = plotter.XY{X: logTime(windows[i]), Y: 100 * u}
		}
		lines = append(lines, labelled{&plotter.Line{XYs: xys, LineStyle: l.line()}, r.Result.Policy})
		c.keys = append(c.keys, key{text: r.Result.Policy, line: l.line()})
	}
	addLabelled(p, lines)
	logTimeAxis(&p.X, windows[0], windows[len(windows)-1])
	p.Y.Min, p.Y.Max = 0, 100
	c.panels = [][]*plot.Plot{{p}}
	return c
}
