//go:build !js

package chart

import (
	"fmt"
	"io"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/eagergc/eagergc/trace"
)

// A Chart is a finished picture. It is made by the functions of this package
// and only written; writing is safe for concurrent use.
type Chart struct {
	title  string
	note   string // a line under the title: what was run
	panels [][]*plot.Plot
	keys   []key
	width  vg.Length // of one panel
	height vg.Length
}

// A key is an entry of the legend. A rug is drawn as a tick, a fill as a patch.
type key struct {
	text  string
	line  draw.LineStyle
	shape draw.GlyphDrawer // nil for none
	patch bool
	rug   bool
}

// Formats are what [Chart.Write] can write.
func Formats() []string { return []string{"svg", "png"} }

const (
	margin  = vg.Length(10)
	leading = vg.Length(14) // of a line of the legend
	sample  = vg.Length(26) // width of a legend's sample
)

// Write draws the chart in a format: svg, which follows the reader from a light
// page to a dark one, or png, light, at 144 dots per inch.
func (c *Chart) Write(w io.Writer, format string) error {
	width := vg.Length(len(c.panels[0]))*c.width + 2*margin
	rows := c.legendRows(width - 2*margin)
	height := vg.Length(len(c.panels))*c.height + c.headHeight(rows) + margin
	switch format {
	case "svg":
		text, err := c.svg(width, height, rows)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case "png":
		canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
		c.draw(draw.New(canvas), rows)
		_, err := canvas.WriteTo(w)
		return err
	}
	return fmt.Errorf("chart: unknown format %q (want svg or png)", format)
}

func (c *Chart) headHeight(rows [][]key) vg.Length {
	return margin + 18 + leading + vg.Length(len(rows))*leading + 8
}

// legendRows breaks the legend into lines that fit the width.
func (c *Chart) legendRows(width vg.Length) [][]key {
	var rows [][]key
	var x vg.Length
	for _, k := range c.keys {
		w := keyWidth(k)
		if len(rows) == 0 || x+w > width {
			rows, x = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], k)
		x += w
	}
	return rows
}

func keyWidth(k key) vg.Length { return sample + 6 + style(9).Width(k.text) + 18 }

// style is the text style of all texts.
func style(size vg.Length) text.Style {
	return text.Style{Color: black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, YAlign: draw.YCenter, Handler: plainText{plot.DefaultTextHandler}}
}

// plainText draws texts as [trace.Plain] says: names come from files, and with a control
// character in it an SVG is no XML.
type plainText struct{ text.Handler }

func (h plainText) Lines(txt string) []string { return []string{trace.Plain(txt)} }

func (h plainText) Box(txt string, f font.Font) (width, height, depth vg.Length) {
	return h.Handler.Box(trace.Plain(txt), f)
}

func (h plainText) Draw(c vg.Canvas, txt string, s text.Style, at vg.Point) {
	h.Handler.Draw(c, trace.Plain(txt), s, at)
}

func (c *Chart) draw(dc draw.Canvas, rows [][]key) {
	dc.SetColor(white)
	dc.Fill(dc.Rectangle.Path())
	y := dc.Max.Y - margin - 7
	bold := style(13)
	bold.Font.Weight = stdfont.WeightBold
	dc.FillText(bold, vg.Point{X: margin, Y: y}, c.title)
	y -= 18
	dc.FillText(style(9), vg.Point{X: margin, Y: y}, c.note)
	y -= leading + 3
	for _, row := range rows {
		x := margin
		for _, k := range row {
			k.draw(&dc, vg.Point{X: x, Y: y})
			x += keyWidth(k)
		}
		y -= leading
	}
	body := draw.Crop(dc, margin, -margin, margin, -c.headHeight(rows))
	for i, line := range c.cells(body) {
		for j, cell := range line {
			if c.panels[i][j] != nil {
				c.panels[i][j].Draw(cell)
			}
		}
	}
}

// cells are where the panels lie in body. The axes of a column are in line, and those
// of a row. Rows are placed one by one: [plot.Align] of all of them moves each a little
// more than the one below, and the first over the legend.
func (c *Chart) cells(body draw.Canvas) [][]draw.Canvas {
	tiles := draw.Tiles{Rows: len(c.panels), Cols: len(c.panels[0]), PadX: 12, PadY: 8}
	cells := plot.Align(c.panels, tiles, body)
	for i, row := range c.panels {
		strip := tiles.At(body, 0, i)
		strip.Max.X = body.Max.X
		line := plot.Align([][]*plot.Plot{row}, draw.Tiles{Rows: 1, Cols: len(row), PadX: tiles.PadX}, strip)[0]
		for j := range row {
			cells[i][j].Min.Y, cells[i][j].Max.Y = line[j].Min.Y, line[j].Max.Y
		}
	}
	return cells
}

// draw draws the sample and the text of a key; at is the middle of its left edge.
func (k *key) draw(dc *draw.Canvas, at vg.Point) {
	mid := at.X + sample/2
	switch {
	case k.patch:
		dc.FillPolygon(k.line.Color, []vg.Point{{X: at.X, Y: at.Y - 4}, {X: at.X + sample, Y: at.Y - 4}, {X: at.X + sample, Y: at.Y + 4}, {X: at.X, Y: at.Y + 4}})
	case k.rug:
		dc.StrokeLine2(k.line, mid, at.Y-4, mid, at.Y+4)
	default:
		dc.StrokeLine2(k.line, at.X, at.Y, at.X+sample, at.Y)
	}
	if k.shape != nil {
		dc.DrawGlyph(glyph(k.line, k.shape), vg.Point{X: mid, Y: at.Y})
	}
	dc.FillText(style(9), vg.Point{X: at.X + sample + 6, Y: at.Y}, k.text)
}

func glyph(line draw.LineStyle, shape draw.GlyphDrawer) draw.GlyphStyle {
	return draw.GlyphStyle{Color: line.Color, Radius: 2.6, Shape: shape}
}

// newPanel returns an empty panel with our fonts and a light grid behind it.
func newPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle = centred(style(10))
	p.Title.TextStyle.Font.Weight = stdfont.WeightBold
	p.Title.Padding = 3
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := a.Label.TextStyle, a.Tick.Label
		label.Font, tick.Font = style(9).Font, style(8).Font
		a.Label.TextStyle, a.Tick.Label = label, tick
		a.LineStyle.Width, a.Tick.LineStyle.Width = 0.5, 0.5
		a.Tick.Length = 4
		a.Padding = 2
		a.Tick.Marker = linearTicks(5)
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	grid := plotter.NewGrid()
	grid.Horizontal = draw.LineStyle{Color: faint, Width: 0.5}
	grid.Vertical = grid.Horizontal
	p.Add(grid)
	return p
}

func centred(s text.Style) text.Style {
	s.XAlign, s.YAlign = draw.XCenter, draw.YTop
	return s
}
