package chart

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

// A Run is one logged run. All runs of a chart are of the same workload and
// config.
type Run struct {
	Result sim.Result
	Log    *sim.Log
	Levels []sim.Level // from [sim.Workload.Series]; only Memory needs them
}

// Memory draws live and garbage over time, a panel for each run, with a mark
// for each cycle. Time is the run's own: a run that is held longer ends later.
func Memory(title, note string, runs []Run) *Chart {
	c := &Chart{title: title, note: note, width: 640, height: 120}
	var most int64
	var end time.Duration
	for _, r := range runs {
		most, end = max(most, r.Result.PeakLive, r.Result.LimitBytes), max(end, r.Result.Elapsed)
	}
	mem, clock := bytesUnit(most), timeUnit(end)
	reachable := draw.LineStyle{Color: blue, Width: 0.5}
	garbage := draw.LineStyle{Color: orange, Width: 0.5}
	limit := draw.LineStyle{Color: black, Width: 1, Dashes: []vg.Length{4, 3}}
	asked := draw.LineStyle{Color: black, Width: 0.8}
	forced := draw.LineStyle{Color: vermillion, Width: 0.8}
	for i, r := range runs {
		x := ""
		if i == len(runs)-1 {
			x = fmt.Sprintf("time (%s)", clock.name)
		}
		p := newPanel(r.Result.Policy, x, fmt.Sprintf("memory (%s)", mem.name))
		p.Add(area(r.Levels, clock, mem, garbage, func(l sim.Level) int64 { return l.Live }))
		p.Add(area(r.Levels, clock, mem, reachable, func(l sim.Level) int64 { return l.Live - l.Garbage }))
		if b := float64(r.Result.LimitBytes) / mem.size; b > 0 {
			p.Add(&plotter.Line{XYs: plotter.XYs{{X: 0, Y: b}, {X: float64(end) / clock.size, Y: b}}, LineStyle: limit})
		}
		top := float64(most) / mem.size
		p.Add(cycleRug(r.Log, gc.TriggerPolicy, asked, clock, top*1.06, top*1.16))
		p.Add(cycleRug(r.Log, gc.TriggerRefusal, forced, clock, top*1.18, top*1.28))
		p.X.Min, p.X.Max = 0, float64(end)/clock.size
		p.X.Tick.Marker, p.Y.Tick.Marker = linearTicks(10), linearTicks(4)
		p.Y.Min, p.Y.Max = 0, top*1.3
		c.panels = append(c.panels, []*plot.Plot{p})
	}
	c.keys = []key{
		{text: "reachable", line: reachable, patch: true}, {text: "garbage", line: garbage, patch: true}, {text: "limit", line: limit},
		{text: "cycle asked for by the policy", line: asked, rug: true}, {text: "cycle forced by a refusal", line: forced, rug: true},
	}
	return c
}

// area fills from 0 up to a level.
func area(levels []sim.Level, clock, mem unit, style draw.LineStyle, of func(sim.Level) int64) plot.Plotter {
	xys := make(plotter.XYs, len(levels))
	for i, l := range levels {
		xys[i] = plotter.XY{X: float64(l.At) / clock.size, Y: float64(of(l)) / mem.size}
	}
	return &plotter.Line{XYs: xys, LineStyle: draw.LineStyle{}, FillColor: style.Color, StepStyle: plotter.PostStep}
}

// A rug is a row of short upright lines.
type rug struct {
	at     []float64
	y0, y1 float64
	style  draw.LineStyle
}

func cycleRug(l *sim.Log, t gc.Trigger, style draw.LineStyle, clock unit, y0, y1 float64) rug {
	r := rug{y0: y0, y1: y1, style: style}
	for _, c := range l.Cycles {
		if c.Trigger == t {
			r.at = append(r.at, float64(c.Start)/clock.size)
		}
	}
	return r
}

// Plot implements [plot.Plotter].
func (r rug) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, at := range r.at {
		c.StrokeLine2(r.style, x(at), y(r.y0), x(at), y(r.y1))
	}
}

// MMU draws the minimum mutator utilization of runs against the window.
func MMU(title, note string, runs []Run, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 560, height: 300}
	var end time.Duration
	for _, r := range runs {
		end = max(end, r.Result.Elapsed)
	}
	p := newPanel("", "window", "share of the window that the program ran (%)")
	windows := sim.Windows(time.Millisecond, max(end, 2*time.Millisecond), 120)
	lines := make([]*plotter.Line, len(runs))
	for i, r := range runs {
		l := palette.of(r.Result.Policy)
		xys := make(plotter.XYs, len(windows))
		for i, u := range r.Log.MMU(r.Result.Elapsed, windows) {
			xys[i] = plotter.XY{X: logTime(windows[i]), Y: 100 * u}
		}
		lines[i] = &plotter.Line{XYs: xys, LineStyle: l.line}
		c.keys = append(c.keys, key{text: r.Result.Policy, line: l.line})
	}
	addLines(p, lines)
	logTimeAxis(&p.X, windows[0], windows[len(windows)-1])
	p.Y.Min, p.Y.Max = 0, 100
	c.panels = [][]*plot.Plot{{p}}
	return c
}

// PauseCDF draws the share of a run's exposed pauses that are no longer than x.
func PauseCDF(title, note string, runs []Run, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 560, height: 300}
	least, most := pauseRange(runs)
	p := newPanel("", "exposed pause", "share of pauses at most this long (%)")
	lines := make([]*plotter.Line, len(runs))
	for i, r := range runs {
		l := palette.of(r.Result.Policy)
		c.keys = append(c.keys, key{text: counted(r), line: l.line})
		if h := r.Log.Histogram(); h.TotalCount() > 0 {
			xys := plotter.XYs{{X: logTime(least), Y: 0}}
			var sum int64
			for _, b := range h.Distribution() {
				if b.Count > 0 {
					sum += b.Count
					at := max(least, time.Duration(b.From))
					xys = append(xys, plotter.XY{X: logTime(at), Y: 100 * float64(sum) / float64(h.TotalCount())})
				}
			}
			xys = append(xys, plotter.XY{X: logTime(most), Y: 100})
			lines[i] = &plotter.Line{XYs: xys, LineStyle: l.line, StepStyle: plotter.PostStep}
		}
	}
	addLines(p, lines)
	logTimeAxis(&p.X, least, most)
	p.Y.Min, p.Y.Max = 0, 102
	c.panels = [][]*plot.Plot{{p}}
	return c
}

// counted is the policy of a run and how many pauses it had.
func counted(r Run) string {
	return fmt.Sprintf("%s: %d pauses", r.Result.Policy, len(r.Log.Pauses))
}

// addLines draws solid lines first, so that where lines coincide the dashes of
// one show over the other.
func addLines(p *plot.Plot, lines []*plotter.Line) {
	for _, dashed := range []bool{false, true} {
		for _, l := range lines {
			if l != nil && (l.Dashes != nil) == dashed {
				p.Add(l)
			}
		}
	}
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
		l := palette.of(r.Result.Policy)
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
				p.Add(bar(logTime(edges[k]), logTime(edges[k+1]), n, l))
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
		Color: l.line.Color, LineStyle: draw.LineStyle{Color: white, Width: 0.5}}
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
