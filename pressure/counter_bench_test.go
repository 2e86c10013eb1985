package pressure_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

type image struct {
	pixels  uintptr
	next    *image
	bytes   int64
	cleanup runtime.Cleanup
}

var (
	images = pressure.NewCounter("images")
	out    int
)

// parallel runs body on so many goroutines of one loop.
func parallel(b *testing.B, goroutines int, body func(more func() bool)) {
	b.ReportAllocs()
	if goroutines == 1 {
		body(b.Loop)
		return
	}
	b.SetParallelism((goroutines + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) { body(pb.Next) })
}

// BenchmarkAdd counts an object and counts it off, beside the same on one plain number and on one that goroutines share.
func BenchmarkAdd(b *testing.B) {
	var shared atomic.Int64
	for _, goroutines := range []int{1, 8} {
		b.Run(fmt.Sprintf("way=Add/goroutines=%d", goroutines), func(b *testing.B) {
			parallel(b, goroutines, func(more func() bool) {
				for more() {
					images.Add(4096)
					images.Sub(4096)
				}
			})
		})
		b.Run(fmt.Sprintf("way=atomic/goroutines=%d", goroutines), func(b *testing.B) {
			parallel(b, goroutines, func(more func() bool) {
				for more() {
					shared.Add(4096)
					shared.Add(-4096)
				}
			})
		})
	}
}

func freeNothing(uintptr) {}

// BenchmarkOwn makes an object whose memory is given back in five ways; free does nothing, so that
// what is measured is the way. Own=..hand and AddCleanup=..hand stop the cleanup.
func BenchmarkOwn(b *testing.B) {
	one := uintptr(unsafe.Pointer(&out)) // some address that is no object's
	ways := []struct {
		name string
		do   func(p *image)
	}{
		{"Own", func(p *image) { pressure.Own(images, p, 4096, freeNothing, one) }},
		{"AddCleanup", func(p *image) { runtime.AddCleanup(p, freeNothing, one) }},
		{"SetFinalizer", func(p *image) { runtime.SetFinalizer(p, func(p *image) { freeNothing(p.pixels) }) }},
		{"Own-hand", func(p *image) {
			p.cleanup = pressure.Own(images, p, 4096, freeNothing, one)
			p.cleanup.Stop()
			freeNothing(one)
			images.Sub(4096)
		}},
		{"AddCleanup-hand", func(p *image) {
			p.cleanup = runtime.AddCleanup(p, freeNothing, one)
			p.cleanup.Stop()
			freeNothing(one)
		}},
		{"free", func(p *image) { freeNothing(p.pixels) }},
	}
	for _, goroutines := range []int{1, 8} {
		for _, way := range ways {
			b.Run(fmt.Sprintf("way=%s/goroutines=%d", way.name, goroutines), func(b *testing.B) {
				parallel(b, goroutines, func(more func() bool) {
					for more() {
						p := &image{bytes: 4096}
						way.do(p)
						runtime.KeepAlive(p)
					}
				})
			})
		}
	}
}
