// Crash draws pages with github.com/gotk3/gotk3/cairo, whose objects have finalizers and whose methods keep nothing
// alive, and reads the pixels as a slice: a cycle after the last call of a page frees them. How often it dies is in
// results/2026-11-23-vet.
//
//	EAGERGC=off|on|stress crash [-keep] [-pages 60]
package main

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/gotk3/gotk3/cairo"

	_ "github.com/eagergc/eagergc/gc/auto"
)

var (
	keep  = flag.Bool("keep", false, "keep each page alive until its pixels are read")
	pages = flag.Int("pages", 60, "that are drawn, of 36 MB each")
)

func main() {
	flag.Parse()
	var wg sync.WaitGroup
	var sums [2]uint32
	for w := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range *pages / 2 {
				if seed := float64(2*i + w); *keep {
					sums[w] += drawAndKeep(seed)
				} else {
					sums[w] += draw(seed)
				}
			}
		}()
	}
	wg.Wait()
	fmt.Println(sums[0] + sums[1])
}

// draw draws a page, and sums up its pixels, as an encoder in Go would read them.
func draw(seed float64) uint32 {
	_, pixels := page(seed)
	return sum(pixels)
}

func drawAndKeep(seed float64) uint32 {
	s, pixels := page(seed)
	defer runtime.KeepAlive(s)
	return sum(pixels)
}

func page(seed float64) (*cairo.Surface, []uint32) {
	const side = 3000
	s := cairo.CreateImageSurface(cairo.FORMAT_ARGB32, side, side)
	c := cairo.Create(s)
	for i := range 20 {
		x := float64(i)*150 + seed
		c.SetSourceRGBA(x/9000, 0.5, 0.2, 0.5)
		c.MoveTo(x, 0)
		c.CurveTo(x+200, 300, x-200, 600, x, side)
		c.Stroke()
	}
	defer runtime.KeepAlive(c)
	return s, unsafe.Slice((*uint32)(s.GetData()), side*side)
}

func sum(pixels []uint32) (sum uint32) {
	for _, p := range pixels {
		sum += p
	}
	return sum
}
