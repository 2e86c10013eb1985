package pressure_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// each runs a benchmark on one goroutine and on eight, without a collector that listens and with one.
func each(b *testing.B, way string, body func()) {
	for _, goroutines := range []int{1, 8} {
		for _, collector := range []string{"off", "on"} {
			b.Run(fmt.Sprintf("way=%s/goroutines=%d/collector=%s", way, goroutines, collector), func(b *testing.B) {
				if collector == "on" {
					c, err := gc.New(gc.Config{})
					if err != nil {
						b.Fatal(err)
					}
					defer c.Close()
					c.Listen()
				}
				b.ReportAllocs()
				if goroutines == 1 {
					for b.Loop() {
						body()
					}
					return
				}
				procs := runtime.GOMAXPROCS(min(8, runtime.NumCPU()))
				defer runtime.GOMAXPROCS(procs)
				b.SetParallelism((goroutines + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						body()
					}
				})
			})
		}
	}
}

var images = pressure.NewCounter("images")

// BenchmarkAdd counts an object and counts it off, beside the same on one number that all share.
func BenchmarkAdd(b *testing.B) {
	var shared atomic.Int64
	each(b, "Add", func() {
		images.Add(4096)
		images.Sub(4096)
	})
	each(b, "atomic", func() {
		shared.Add(4096)
		shared.Add(-4096)
	})
}

type image struct {
	pixels uintptr
	_      [3]uintptr // what an image has besides
}

func freePixels(uintptr) {}

// BenchmarkOwn makes an object, whose memory is given back in one of four ways. There is no memory, so that
// what is measured is the way: free is a call of the function that frees.
func BenchmarkOwn(b *testing.B) {
	pixels := uintptr(unsafe.Pointer(images)) // some address that is not the owner's
	each(b, "Own", func() { pressure.Own(images, new(image), 4096, freePixels, pixels) })
	each(b, "AddCleanup", func() { runtime.AddCleanup(new(image), freePixels, pixels) })
	each(b, "SetFinalizer", func() { runtime.SetFinalizer(new(image), func(p *image) { freePixels(p.pixels) }) })
	each(b, "free", func() {
		made = &image{pixels: pixels}
		freePixels(made.pixels)
	})
}

var made *image // or the compiler would put it on the stack
