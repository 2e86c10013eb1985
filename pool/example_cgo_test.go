//go:build cgo

package pool_test

import (
	"fmt"
	"log"
	"runtime"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool/internal/cmalloc"
)

// A Picture's pixels are memory of the C library.
type Picture struct {
	pixels unsafe.Pointer
	size   int64
	handle gc.Handle
}

func openPicture(c *gc.Collector, size int64) *Picture {
	pixels := cmalloc.Malloc(size) // C.malloc, or what a C library returns
	p := &Picture{pixels: pixels, size: size}
	p.handle = gc.Own(c, p, size, cmalloc.Free, pixels)
	return p
}

// Paint uses the memory. Without KeepAlive a cycle might find p dead, and free
// its pixels, while they are still written to.
func (p *Picture) Paint(grey byte) {
	row := unsafe.Slice((*byte)(p.pixels), p.size)
	for i := range row {
		row[i] = grey
	}
	runtime.KeepAlive(p)
}

// Close is for those who know when they are done; for the others there are the cycles.
func (p *Picture) Close() { p.handle.Release() }

// An app with memory of a C library: half of its pictures are closed, the other
// half forgotten.
func Example_cMemory() {
	collector, err := gc.New(gc.Config{Limit: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer collector.Close()

	for i := range 512 {
		p := openPicture(collector, 1<<20)
		p.Paint(128)
		if i%2 == 0 {
			p.Close()
		}
	}
	collector.Collect(policy.TriggerExplicit)
	for collector.Stats().Pending > 0 { // a free that takes long outlasts its cycle
		time.Sleep(time.Millisecond)
	}
	fmt.Println("given back by cycles:", collector.Stats().Objects)
	fmt.Println("left over:", collector.Snapshot().Sources[0].Live)
	// Output:
	// given back by cycles: 256
	// left over: 0
}
