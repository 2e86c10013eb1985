//go:build !js

package chart

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
)

// Alpha of a policy's colour in memoryChart.
const (
	reachableTint = 0xD0
	garbageTint   = 0x50
)

// memoryChart draws reachable bytes and garbage over time, with a mark for each cycle. Each run
// has a panel in the colour of its policy. Time is the run's own: a run with longer pauses ends
// later. The axis ends with the longest run that takes at most twice as long as the shortest.
// The title of a longer run says when it ends.
func memoryChart(title, note string, runs []Run, palette Palette) *Chart {
	c := &Chart{title: title, note: note, width: 640, height: 120}
	var most int64
	for _, r := range runs {
		most = max(most, r.Result.PeakLive, r.Result.LimitBytes)
	}
	end := timeShown(runs)
	dense := false
	mem, clock := bytesUnit(most), timeUnit(end)
	limit := draw.LineStyle{Color: black, Width: 1, Dashes: []vg.Length{4, 3}}
	mark := draw.LineStyle{Color: black, Width: 0.8}
	for i, r := range runs {
		x, title := "", r.Result.Policy
		if i == len(runs)-1 {
			x = fmt.Sprintf("time (%s)", clock.name)
		}
		if r.Result.Elapsed > end {
			title += fmt.Sprintf(": cut off here, it goes on to %.3g %s", float64(r.Result.Elapsed)/clock.size, clock.name)
		}
		p := newPanel(title, x, fmt.Sprintf("memory (%s)", mem.name))
		look := palette.of(r.Result.Policy)
		if len(r.Log.Cycles) > manyCycles {
			dense = true
			p.Add(bands(columnsOf(r.Levels, end), clock, mem, &look)...)
		} else {
			p.Add(area(r.Levels, clock, mem, look.fill(garbageTint), func(l sim.Level) int64 { return l.Live }))
			p.Add(area(r.Levels, clock, mem, look.fill(reachableTint), func(l sim.Level) int64 { return l.Live - l.Garbage }))
		}
		if b := float64(r.Result.LimitBytes) / mem.size; b > 0 {
			p.Add(&plotter.Line{XYs: plotter.XYs{{Y: b}, {X: float64(end) / clock.size, Y: b}}, LineStyle: limit})
		}
		top := float64(most) / mem.size
		p.Add(cycleRug(r.Log, policy.TriggerPolicy, mark, clock, top*1.06, top*1.16))
		p.Add(cycleRug(r.Log, policy.TriggerRefusal, mark, clock, top*1.18, top*1.28))
		p.X.Min, p.X.Max = 0, float64(end)/clock.size
		p.X.Tick.Marker, p.Y.Tick.Marker = linearTicks(10), linearTicks(4)
		p.Y.Min, p.Y.Max = 0, top*1.3
		c.panels = append(c.panels, []*plot.Plot{p})
	}
	strong, weak := make([]color.Color, len(runs)), make([]color.Color, len(runs))
	for i, r := range runs {
		look := palette.of(r.Result.Policy)
		strong[i], weak[i] = look.fill(reachableTint).Color, look.fill(garbageTint).Color
	}
	c.keys = []key{
		{text: "reachable", patch: strong}, {text: "garbage", patch: weak},
		{text: "limit", line: limit}, {text: "cycle asked for by the policy", line: mark, rug: true},
		{text: "cycle forced by a refusal", line: draw.LineStyle{Color: black}, shape: refused{}},
	}
	if dense {
		c.keys = append(c.keys, key{text: "live: least, mean and most of a column", line: draw.LineStyle{Color: rgb(0x716D6E), Width: 1}})
	}
	return c
}

// manyCycles is the number of cycles beyond which they merge in a panel 600 points wide.
const manyCycles = 120

// A column is the memory in a part of the time axis.
type column struct {
	at                    float64
	low, high             float64 // of live
	live, reachable, span float64 // sums over time
}

// columnsOf cuts levels into columns 2 points wide. A level holds until the next.
func columnsOf(levels []sim.Level, end time.Duration) []column {
	all := make([]column, 300)
	wide := float64(max(1, end)) / float64(len(all))
	for i, l := range levels {
		until := levels[min(i+1, len(levels)-1)].At
		for k := int(float64(l.At) / wide); k < len(all) && float64(k)*wide <= float64(until); k++ {
			c := &all[k]
			held := max(1, min(float64(until), float64(k+1)*wide)-max(float64(l.At), float64(k)*wide))
			if c.span == 0 {
				c.low = float64(l.Live)
			}
			c.at, c.low, c.high = (float64(k)+0.5)*wide, min(c.low, float64(l.Live)), max(c.high, float64(l.Live))
			c.live, c.reachable, c.span = c.live+held*float64(l.Live), c.reachable+held*float64(l.Live-l.Garbage), c.span+held
		}
	}
	return slices.DeleteFunc(all, func(c column) bool { return c.span == 0 })
}

// bands draw columns: the mean of the reachable bytes, and live bytes from the least to the
// greatest, with their mean.
func bands(columns []column, clock, mem unit, look *policyStyle) []plot.Plotter {
	reachable, band, mean := plotter.XYs{}, plotter.XYs{}, plotter.XYs{}
	for _, c := range columns {
		x := c.at / clock.size
		reachable = append(reachable, plotter.XY{X: x, Y: c.reachable / c.span / mem.size})
		mean = append(mean, plotter.XY{X: x, Y: c.live / c.span / mem.size})
		band = append(band, plotter.XY{X: x, Y: c.high / mem.size})
	}
	for _, c := range slices.Backward(columns) {
		band = append(band, plotter.XY{X: c.at / clock.size, Y: c.low / mem.size})
	}
	line := look.line()
	line.Width, line.Dashes = 0.8, nil
	return []plot.Plotter{
		&plotter.Line{XYs: reachable, FillColor: look.fill(reachableTint).Color},
		&plotter.Polygon{XYs: []plotter.XYs{band}, Color: look.fill(garbageTint).Color},
		&plotter.Line{XYs: mean, LineStyle: line},
	}
}

func (l *policyStyle) shape() draw.GlyphDrawer {
	return [...]draw.GlyphDrawer{circle: draw.CircleGlyph{}, plus: draw.PlusGlyph{}, square: draw.SquareGlyph{}, triangleUp: draw.TriangleGlyph{},
		ring: draw.RingGlyph{}, box: draw.BoxGlyph{}, cross: draw.CrossGlyph{}, pyramid: draw.PyramidGlyph{}}[l.shapeOf]
}

func (l *policyStyle) line() draw.LineStyle {
	var dashes []vg.Length
	for _, d := range l.Dash {
		dashes = append(dashes, vg.Length(d))
	}
	return draw.LineStyle{Color: l.Light, Width: vg.Length(l.Width), Dashes: dashes}
}

// A tint is a colour that an SVG spells exactly, so that its dark style finds it. gonum divides
// by the alpha and rounds down.
type tint struct{ color.NRGBA }

// RGBA implements [color.Color].
func (t tint) RGBA() (r, g, b, a uint32) {
	r, g, b, a = t.NRGBA.RGBA()
	return min(r+1, a), min(g+1, a), min(b+1, a), a
}

// fill returns a line style with the colour of an area.
func (l *policyStyle) fill(alpha uint8) draw.LineStyle {
	return draw.LineStyle{Color: tint{color.NRGBA{R: l.Light.R, G: l.Light.G, B: l.Light.B, A: alpha}}}
}

// area fills from 0 up to a level.
func area(levels []sim.Level, clock, mem unit, style draw.LineStyle, of func(sim.Level) int64) plot.Plotter {
	xys := make(plotter.XYs, len(levels))
	for i, l := range levels {
		xys[i] = plotter.XY{X: float64(l.At) / clock.size, Y: float64(of(l)) / mem.size}
	}
	return &plotter.Line{XYs: xys, LineStyle: draw.LineStyle{}, FillColor: style.Color, StepStyle: plotter.PostStep}
}

// A rug is a row of marks: short lines, or triangles for refusals. If there are too many, it is
// a strip with the number of marks in each two points.
type rug struct {
	at     []float64
	y0, y1 float64
	style  draw.LineStyle

	refusal bool
}

func cycleRug(l *sim.Log, t policy.Trigger, style draw.LineStyle, clock unit, y0, y1 float64) rug {
	r := rug{y0: y0, y1: y1, style: style, refusal: t == policy.TriggerRefusal}
	for _, c := range l.Cycles {
		if c.Trigger == t {
			r.at = append(r.at, float64(c.Start)/clock.size)
		}
	}
	return r
}

// Plot implements [plot.Plotter]. All marks are one path, which keeps files small.
func (r rug) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var path vg.Path
	if len(r.at) > manyCycles {
		r.strip(c, x, y, p.X.Max)
		return
	}
	for _, at := range r.at {
		if at > p.X.Max {
			break
		}
		if r.refusal {
			path = append(path, triangle(vg.Point{X: x(at), Y: y((r.y0 + r.y1) / 2)}, 2.6)...)
			continue
		}
		path.Move(vg.Point{X: x(at), Y: y(r.y0)})
		path.Line(vg.Point{X: x(at), Y: y(r.y1)})
	}
	if len(path) == 0 {
		return
	}
	c.SetLineStyle(r.style)
	if r.refusal {
		c.Fill(path)
	} else {
		c.Stroke(path)
	}
}

// strip draws the number of marks in each two points, relative to the greatest.
func (r rug) strip(c draw.Canvas, x, y func(float64) vg.Length, end float64) {
	counts, most := make(map[int]int), 1
	for _, at := range r.at {
		if at <= end {
			k := int(x(at) / 2)
			counts[k]++
			most = max(most, counts[k])
		}
	}
	var path vg.Path
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		left, top := vg.Length(2*k), y(r.y0+(r.y1-r.y0)*float64(counts[k])/float64(most))
		path.Move(vg.Point{X: left, Y: y(r.y0)})
		path.Line(vg.Point{X: left, Y: top})
		path.Line(vg.Point{X: left + 2, Y: top})
		path.Line(vg.Point{X: left + 2, Y: y(r.y0)})
		path.Close()
	}
	c.SetColor(r.style.Color)
	c.Fill(path)
}

// refused is the mark of a refusal: a triangle that points down.
type refused struct{}

// DrawGlyph implements [draw.GlyphDrawer].
func (refused) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.SetColor(s.Color)
	c.Fill(triangle(at, s.Radius))
}

func triangle(at vg.Point, r vg.Length) (path vg.Path) {
	path.Move(vg.Point{X: at.X - r, Y: at.Y + r})
	path.Line(vg.Point{X: at.X + r, Y: at.Y + r})
	path.Line(vg.Point{X: at.X, Y: at.Y - r})
	path.Close()
	return path
}
