// Surfaces draws pictures with cairo. The finalizers of gotk3 free surfaces and contexts. A context
// holds its surface, so a surface is freed only after its context.
package main

import (
	"math"

	"github.com/gotk3/gotk3/cairo"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const side = 1024 // of a picture, in pixels

func main() {
	frame.Main("surfaces", frame.Client{Workers: 2, Requests: 120, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	return func(i int) error {
		surface := cairo.CreateImageSurface(cairo.FORMAT_ARGB32, side, side)
		defer frame.Hold(w, surface, side*side*4, surface.Close)()
		draw := cairo.Create(surface)
		defer frame.Hold(w, draw, 1<<10, draw.Close)()
		draw.SetSourceRGB(1, 1, 1)
		draw.Paint()
		draw.SetSourceRGB(0.2, float64(i%10)/10, 0.6)
		for k := range 12 {
			draw.Arc(float64(80*k), 500, 300, 0, 2*math.Pi)
			draw.Stroke()
		}
		return nil
	}, nil
}
