package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/sim"
)

// The colours of Okabe and Ito, "Color Universal Design" (2008), less yellow,
// which is too faint on white; grey is for the control that does nothing.
var (
	black      = color.RGBA{A: 255}
	grey       = color.RGBA{R: 0x77, G: 0x77, B: 0x77, A: 255}
	blue       = color.RGBA{R: 0x00, G: 0x72, B: 0xB2, A: 255}
	vermillion = color.RGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 255}
	green      = color.RGBA{R: 0x00, G: 0x9E, B: 0x73, A: 255}
	purple     = color.RGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 255}
	orange     = color.RGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 255}
	sky        = color.RGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 255}
	faint      = color.RGBA{R: 0xE4, G: 0xE4, B: 0xE4, A: 255}
	white      = color.RGBA{R: 255, G: 255, B: 255, A: 255}
)

var (
	colors = []color.Color{blue, vermillion, green, purple, orange, sky}
	dashes = [][]vg.Length{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}, {4, 1}, {10, 3}, {6, 2, 2, 2, 2, 2}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.CrossGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}
)

// A look is how a policy is drawn.
type look struct {
	line  draw.LineStyle
	shape draw.GlyphDrawer
}

// A Palette maps policies to looks. The zero value draws everything alike.
// It is safe for concurrent use once made.
type Palette struct{ looks map[string]look }

// NewPalette returns the palette of a comparison. Optima are black, never is
// grey, and the others take colours, dashes and markers in their order.
func NewPalette(policies []string) Palette {
	p := Palette{make(map[string]look, len(policies))}
	optima, others := 0, 0
	for _, name := range policies {
		if _, known := p.looks[name]; known {
			continue
		}
		l := look{line: draw.LineStyle{Color: grey, Width: 1.5}, shape: draw.PlusGlyph{}}
		switch {
		case isOptimum(name):
			l.line.Color, l.line.Dashes = black, dashes[optima%len(dashes)]
			l.shape = draw.PyramidGlyph{}
			optima++
		case name != "never":
			l.line.Color = colors[others%len(colors)]
			l.line.Dashes = dashes[others%len(dashes)]
			l.shape = shapes[others%len(shapes)]
			others++
		}
		p.looks[name] = l
	}
	return p
}

func isOptimum(name string) bool {
	for _, o := range sim.Optima() {
		if o == name {
			return true
		}
	}
	return false
}

// Line returns the colour of a policy's lines and their dashes, in points (nil
// is an unbroken line), for charts that are drawn elsewhere.
func (p Palette) Line(policy string) (color.RGBA, []float64) {
	l := p.of(policy).line
	var dash []float64
	for _, d := range l.Dashes {
		dash = append(dash, d.Points())
	}
	return color.RGBAModel.Convert(l.Color).(color.RGBA), dash
}

func (p Palette) of(policy string) look {
	if l, ok := p.looks[policy]; ok {
		return l
	}
	return look{line: draw.LineStyle{Color: black, Width: 1.5}, shape: draw.CircleGlyph{}}
}
