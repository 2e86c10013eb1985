// Geometry widens and joins shapes with GEOS. The finalizers of go-geos free them, under the lock
// of their context.
package main

import (
	"fmt"
	"math"

	"github.com/twpayne/go-geos"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

const corners = 3000 // of a shape

func main() {
	frame.Main("geometry", frame.Client{Workers: 2, Requests: 1200, Start: start})
}

func start(w *frame.Way) (frame.Service, error) {
	context := geos.NewContext()
	stars := make([][][]float64, 10)
	for i := range stars {
		stars[i] = star(i)
	}
	return func(i int) error {
		shape := context.NewPolygon([][][]float64{stars[i%len(stars)]})
		defer hold(w, shape)()
		wide := shape.Buffer(0.5, 8)
		defer hold(w, wide)()
		other := wide.Clone()
		defer hold(w, other)()
		both := other.Union(shape)
		defer hold(w, both)()
		if both.Area() < shape.Area() {
			return fmt.Errorf("shape %d has shrunk", i)
		}
		return nil
	}, nil
}

// star returns a closed ring around a circle.
func star(i int) [][]float64 {
	ring := make([][]float64, corners+1)
	for k := range ring {
		angle := 2 * math.Pi * float64(k%corners) / corners
		r := 1000 + 10*math.Sin(40*angle+float64(i))
		ring[k] = []float64{r * math.Cos(angle), r * math.Sin(angle)}
	}
	return ring
}

func hold(w *frame.Way, g *geos.Geom) (done func()) {
	return frame.Hold(w, g, int64(g.NumCoordinates())*24, g.Destroy)
}
