package chart

import (
	"image/color"
	"math"
	"slices"
	"testing"
)

// A sight maps linear red, green and blue to the colours that a reader sees. The matrices are
// those of Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of
// Color Vision Deficiency" (2009), at full severity.
var sights = map[string][3][3]float64{
	"all colours": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"no red":      {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"no green":    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"no blue":     {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func linear(c color.RGBA) (out [3]float64) {
	for i, v := range []uint8{c.R, c.G, c.B} {
		x := float64(v) / 255
		if out[i] = x / 12.92; x > 0.04045 {
			out[i] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	return out
}

// oklab returns a colour in the space of Ottosson (2020), whose distances are about those that
// readers see.
func oklab(c color.RGBA, sight [3][3]float64) (lab [3]float64) {
	times := func(m [3][3]float64, v [3]float64) (out [3]float64) {
		for i, row := range m {
			out[i] = row[0]*v[0] + row[1]*v[1] + row[2]*v[2]
		}
		return out
	}
	v := times(sight, linear(c))
	for i := range v {
		v[i] = max(0, v[i])
	}
	v = times([3][3]float64{{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005}}, v)
	for i := range v {
		v[i] = math.Cbrt(v[i])
	}
	return times([3][3]float64{{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}}, v)
}

// contrast is that of the Web Content Accessibility Guidelines, from 1 to 21.
func contrast(a, b color.RGBA) float64 {
	light := func(c color.RGBA) float64 {
		l := linear(c)
		return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2]
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestColoursAreToldApartByEveryReader(t *testing.T) {
	inReport := []string{"never", "cudajl", "sqrt", "v8step", "pacer", "optimum-overlap"}
	for page, of := range map[string]struct {
		paper color.RGBA
		draw  func(policyStyle) color.RGBA
	}{
		"light": {white, func(l policyStyle) color.RGBA { return l.Light }},
		"dark":  {rgb(0x161719), func(l policyStyle) color.RGBA { return l.Dark }},
	} {
		for i, a := range namedStyles {
			if c := contrast(of.draw(a.policyStyle), of.paper); c < 3 {
				t.Errorf("%s on a %s page: contrast %.2f, want 3 (WCAG 1.4.11)", a.name, page, c)
			}
			for _, b := range namedStyles[:i] {
				want := 0.07
				if slices.Contains(inReport, a.name) && slices.Contains(inReport, b.name) {
					want = 0.11
				}
				for name, sight := range sights {
					x, y := oklab(of.draw(a.policyStyle), sight), oklab(of.draw(b.policyStyle), sight)
					if d := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2]); d < want {
						t.Errorf("%s and %s on a %s page, for eyes that see %s: distance %.3f, want %.2f", a.name, b.name, page, name, d, want)
					}
				}
			}
		}
	}
}
