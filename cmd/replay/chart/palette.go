package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/eagergc/eagergc/cmd/replay/view"
)

// A Palette gives policies their looks.
type Palette = view.Palette

// Colours of what is no policy. On a dark page, ink is white and paper black.
var (
	black = color.RGBA{A: 255}
	faint = color.RGBA{R: 0xE4, G: 0xE4, B: 0xE4, A: 255}
	white = color.RGBA{R: 255, G: 255, B: 255, A: 255}
)

// A look is a policy's, as gonum draws it.
type look struct{ view.Look }

func lookOf(p Palette, policy string) look { return look{p.Of(policy)} }

func (l *look) shape() draw.GlyphDrawer {
	return [...]draw.GlyphDrawer{view.Circle: draw.CircleGlyph{}, view.Plus: draw.PlusGlyph{}, view.Square: draw.SquareGlyph{}, view.Triangle: draw.TriangleGlyph{},
		view.Ring: draw.RingGlyph{}, view.Box: draw.BoxGlyph{}, view.Cross: draw.CrossGlyph{}, view.Pyramid: draw.PyramidGlyph{}}[l.Shape]
}

func (l *look) line() draw.LineStyle {
	var dashes []vg.Length
	for _, d := range l.Dash {
		dashes = append(dashes, vg.Length(d))
	}
	return draw.LineStyle{Color: l.Light, Width: vg.Length(l.Width), Dashes: dashes}
}

func (l *look) glyph() draw.GlyphStyle { return glyph(l.line(), l.shape()) }

// tint is the look's colour as a fill that lets the grid show.
func (l *look) tint(alpha uint8) color.Color {
	return tint{color.NRGBA{R: l.Light.R, G: l.Light.G, B: l.Light.B, A: alpha}}
}

// A tint is a colour that an SVG names as it is, so that its dark style finds it:
// gonum divides by the alpha, and rounds down.
type tint struct{ color.NRGBA }

// RGBA implements [color.Color].
func (t tint) RGBA() (r, g, b, a uint32) {
	r, g, b, a = t.NRGBA.RGBA()
	return min(r+1, a), min(g+1, a), min(b+1, a), a
}
