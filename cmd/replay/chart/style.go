package chart

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
)

// Colours of text, grid and paper. On a dark page, text is light and paper dark.
var (
	black = color.RGBA{A: 255}
	faint = color.RGBA{R: 0xE4, G: 0xE4, B: 0xE4, A: 255}
	white = color.RGBA{R: 255, G: 255, B: 255, A: 255}
)

// Shapes of marks.
const (
	circle = iota
	plus
	square
	triangleUp
	ring
	box
	cross
	pyramid
	shapes // their number
)

// A policyStyle is the style of a policy in every picture.
type policyStyle struct {
	Light, Dark color.RGBA // on a light page, on a dark one
	Dash        []float64  // of lines, in points; nil is an unbroken line
	Width       float64    // of lines, in points
	shapeOf     int        // of marks
}

// A namedStyle is a policy with a style of its own.
type namedStyle struct {
	name string
	policyStyle
}

// namedStyles are the policies of the default comparison. A search chose the colours so that any
// two differ from each other and from the page, for readers with each kind of colour blindness
// too. The test of this package checks that. Pacer has the widest line.
var namedStyles = []namedStyle{
	{"pacer", policyStyle{rgb(0x1547C0), rgb(0x4B84FE), nil, 2.6, circle}},
	{"never", policyStyle{rgb(0x716D6E), rgb(0x6A6B6A), nil, 1.5, plus}},
	{"cudajl", policyStyle{rgb(0xBA5400), rgb(0xEE6E17), []float64{7, 2}, 1.5, square}},
	{"sqrt", policyStyle{rgb(0x5DA17C), rgb(0x9DD9B0), []float64{3, 2}, 1.5, triangleUp}},
	{"v8step", policyStyle{rgb(0x8E0070), rgb(0xC18AAF), []float64{8, 2, 2, 2}, 1.5, ring}},
	{"rtorch", policyStyle{rgb(0xBA8C2A), rgb(0xEDB33F), []float64{5, 1}, 1.5, box}},
	{"opencl", policyStyle{rgb(0x1E7DAB), rgb(0x27BAF2), []float64{11, 3}, 1.5, cross}},
	{"growth", policyStyle{rgb(0x410418), rgb(0xD27879), []float64{6, 2, 2, 2, 2, 2}, 1.5, triangleUp}},
	{"dotnet", policyStyle{rgb(0x2F3D06), rgb(0xE7E57B), []float64{2, 2}, 1.5, square}},
	{"optimum-blocking", policyStyle{rgb(0x6A4F32), rgb(0x8D642F), []float64{9, 2}, 1.5, pyramid}},
	{"optimum-overlap", policyStyle{rgb(0x000000), rgb(0xFFFFFF), []float64{4, 3}, 1.5, pyramid}},
}

// rgb returns the colour 0xRRGGBB.
func rgb(code uint32) color.RGBA {
	return color.RGBA{R: uint8(code >> 16), G: uint8(code >> 8), B: uint8(code), A: 255}
}

// A Palette maps policies to styles. The zero value draws all in black. It is safe for
// concurrent use.
type Palette struct{ looks map[string]policyStyle }

// NewPalette returns the styles of the policies of one picture. A policy with a style of its own
// has it in every picture. The others take the remaining styles in order, but never pacer's; so
// does a second policy with the same name and other parameters. If none remains, a colour is
// used again with another dash and another mark.
func NewPalette(policies []string) Palette {
	p := Palette{make(map[string]policyStyle, len(policies))}
	taken := make([]int, len(namedStyles)) // how often
	take := func(name string, i int) {
		l := namedStyles[i].policyStyle
		if n := taken[i]; n > 0 {
			l.Dash = []float64{float64(2 + 2*n), 2, 1, 2}
			l.shapeOf = (l.shapeOf + 3*n) % shapes // the next one looks much like the first
		}
		taken[i]++
		p.looks[name] = l
	}
	family := func(name string) string { f, _, _ := strings.Cut(name, ":"); return f }
	for _, owned := range []func(string) string{strings.Clone, family} { // pacer goes before pacer:share=0.2
		for _, name := range policies {
			i := slices.IndexFunc(namedStyles, func(o namedStyle) bool { return o.name == owned(name) })
			if _, known := p.looks[name]; !known && i >= 0 && taken[i] == 0 {
				take(name, i)
			}
		}
	}
	for _, name := range policies {
		if _, known := p.looks[name]; known {
			continue
		}
		i := slices.Index(taken[1:], 0) + 1 // pacer's is its own
		if i == 0 {
			i = slices.IndexFunc(namedStyles, func(o namedStyle) bool { return o.name == family(name) })
		}
		if i < 0 {
			i = 1 + slices.Index(taken[1:], slices.Min(taken[1:]))
		}
		take(name, i)
	}
	return p
}

func (p Palette) of(policy string) policyStyle {
	if l, ok := p.looks[policy]; ok {
		return l
	}
	return policyStyle{Light: black, Dark: white, Width: 1.5, shapeOf: circle}
}

// styledNames returns the policies that have a style of their own.
func styledNames() []string {
	var names []string
	for _, o := range namedStyles {
		names = append(names, o.name)
	}
	return names
}

// hex returns a colour as CSS spells it.
func hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// Mark returns the colour of a policy on a light page, as CSS spells it.
func (p Palette) Mark(policy string) string { return hex(p.of(policy).Light) }
