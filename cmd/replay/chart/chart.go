//go:build !js

package chart

import (
	"cmp"
	"fmt"
	"image/color"
	"io"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A Chart is a finished picture. Writing it is safe for concurrent use.
type Chart struct {
	title  string
	note   string // a line under the title that names the run
	panels [][]*plot.Plot
	keys   []key
	width  vg.Length // of one panel
	height vg.Length
	scale  float64 // of the whole; 0 is 1
	bare   bool    // without title and note
}

// A key is an entry of the legend. A rug is drawn as a tick, an area as a patch.
type key struct {
	text  string
	line  draw.LineStyle
	shape draw.GlyphDrawer // nil for none
	patch []color.Color    // of the areas, side by side
	rug   bool
}

// Formats returns the formats of [Chart.Write].
func Formats() []string { return []string{"svg", "png", "pdf"} }

// A Layout fits charts to a page or a slide. The zero value changes nothing.
type Layout struct {
	Title string  // in place of the chart's own
	Bare  bool    // no title and no note: the caption says it
	Width float64 // of the whole, points of 1/72 inch
	Font  float64 // size of labels, points; lines grow with it
}

// fontSize is the default size of labels, in points.
const fontSize = 9

// Lay applies a layout.
func (c *Chart) Lay(l Layout) {
	if l.Title != "" {
		c.title = l.Title
	}
	c.bare, c.scale = l.Bare, 1
	if l.Font > 0 {
		c.scale = l.Font / fontSize
	}
	if l.Width > 0 {
		c.width = max(60, (vg.Length(l.Width/c.scale)-2*margin)/vg.Length(len(c.panels[0])))
	}
}

const (
	margin  = vg.Length(10)
	leading = vg.Length(14) // of a line of the legend
	sample  = vg.Length(26) // width of a legend's sample
)

// Write draws the chart in a format: svg, png or pdf. An SVG is dark on a dark page. A PNG is
// light and has 144 dots per inch.
func (c *Chart) Write(w io.Writer, format string) error {
	width := vg.Length(len(c.panels[0]))*c.width + 2*margin
	rows := c.legendRows(width - 2*margin)
	height := vg.Length(len(c.panels))*c.height + c.headHeight(rows) + margin
	scale := cmp.Or(c.scale, 1)
	canvas := canvases[format]
	if canvas == nil {
		return fmt.Errorf("chart: unknown format %q (want svg, png or pdf)", format)
	}
	on := canvas(width*vg.Length(scale), height*vg.Length(scale))
	if scale != 1 {
		on.Scale(scale, scale)
	}
	c.draw(draw.NewCanvas(on, width, height), rows)
	if format == "svg" {
		return c.writeSVG(w, on)
	}
	_, err := on.WriteTo(w)
	return err
}

// canvases returns the canvas of each format.
var canvases = map[string]func(width, height vg.Length) vg.CanvasWriterTo{
	"svg": func(w, h vg.Length) vg.CanvasWriterTo { return vgsvg.New(w, h) },
	"pdf": func(w, h vg.Length) vg.CanvasWriterTo { return paper{vgpdf.New(w, h)} },
	"png": func(w, h vg.Length) vg.CanvasWriterTo {
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(144))}
	},
}

// A paper is a canvas for PDF that avoids two faults of vgpdf v0.17. It registers a bold font
// under the style of the regular one. It also mistakes colours multiplied with their alpha for
// plain ones.
type paper struct{ *vgpdf.Canvas }

func (p paper) FillString(f font.Face, at vg.Point, text string) {
	if f.Font.Weight != stdfont.WeightNormal {
		f.Font.Weight = stdfont.WeightNormal
		f = font.DefaultCache.Lookup(f.Font, f.Font.Size)
	}
	p.Canvas.FillString(f, at, text)
}

func (p paper) SetColor(c color.Color) {
	p.Canvas.SetColor(straight{color.NRGBAModel.Convert(c).(color.NRGBA)})
}

// A straight colour is not multiplied with its alpha.
type straight struct{ color.NRGBA }

// RGBA implements [color.Color], except for the multiplication.
func (p straight) RGBA() (r, g, b, a uint32) {
	return 0x101 * uint32(p.R), 0x101 * uint32(p.G), 0x101 * uint32(p.B), 0x101 * uint32(p.A)
}

func (c *Chart) headHeight(rows [][]key) vg.Length {
	height := margin + vg.Length(len(rows))*leading + 8
	if !c.bare {
		height += 18 + leading
	}
	return height
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

func keyWidth(k key) vg.Length { return sample + 6 + widest*style(fontSize).Width(k.text) + 12 }

// widest is the width of a text in DejaVu Sans or Verdana over its width in Liberation Sans. A
// reader of an SVG may have only one of them.
const widest = 1.22

func style(size vg.Length) text.Style {
	return text.Style{Color: black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, YAlign: draw.YCenter, Handler: plainText{plot.DefaultTextHandler}}
}

// plainText draws texts as [recording.Plain] returns them. Names come from files, and an SVG
// with a control character is not XML.
type plainText struct{ text.Handler }

func (h plainText) Lines(txt string) []string { return []string{recording.Plain(txt)} }

func (h plainText) Box(txt string, f font.Font) (width, height, depth vg.Length) {
	return h.Handler.Box(recording.Plain(txt), f)
}

func (h plainText) Draw(c vg.Canvas, txt string, s text.Style, at vg.Point) {
	h.Handler.Draw(c, recording.Plain(txt), s, at)
}

func (c *Chart) draw(dc draw.Canvas, rows [][]key) {
	dc.SetColor(white)
	dc.Fill(dc.Rectangle.Path())
	y := dc.Max.Y - margin - 7
	if !c.bare {
		bold := style(13)
		bold.Font.Weight = stdfont.WeightBold
		dc.FillText(bold, vg.Point{X: margin, Y: y}, c.title)
		y -= 18
		dc.FillText(style(fontSize), vg.Point{X: margin, Y: y}, c.note)
		y -= leading + 3
	}
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

// cells returns the places of the panels in body. The axes of each column and each row are
// aligned. Rows are placed one by one, because [plot.Align] moves the upper rows too far, and
// the first over the legend.
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

// draw draws the sample and the text of a key. Its left edge is centred at at.
func (k *key) draw(dc *draw.Canvas, at vg.Point) {
	mid := at.X + sample/2
	switch {
	case k.patch != nil:
		wide := sample / vg.Length(len(k.patch))
		for i, c := range k.patch {
			x := at.X + vg.Length(i)*wide
			dc.FillPolygon(c, []vg.Point{{X: x, Y: at.Y - 4}, {X: x + wide, Y: at.Y - 4}, {X: x + wide, Y: at.Y + 4}, {X: x, Y: at.Y + 4}})
		}
	case k.rug:
		dc.StrokeLine2(k.line, mid, at.Y-4, mid, at.Y+4)
	default:
		dc.StrokeLine2(k.line, at.X, at.Y, at.X+sample, at.Y)
	}
	if k.shape != nil {
		dc.DrawGlyph(glyph(k.line, k.shape), vg.Point{X: mid, Y: at.Y})
	}
	dc.FillText(style(fontSize), vg.Point{X: at.X + sample + 6, Y: at.Y}, k.text)
}

func glyph(line draw.LineStyle, shape draw.GlyphDrawer) draw.GlyphStyle {
	return draw.GlyphStyle{Color: line.Color, Radius: 2.6, Shape: shape}
}

// newPanel returns an empty panel with the fonts of this package and a light grid.
func newPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle = style(10)
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	p.Title.TextStyle.Font.Weight = stdfont.WeightBold
	p.Title.Padding = 3
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := a.Label.TextStyle, a.Tick.Label
		label.Font, tick.Font = style(fontSize).Font, style(8).Font
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
