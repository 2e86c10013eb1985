package cuda

import (
	"fmt"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

// benchSizes are the sizes of the comparison with other allocators: see
// bench/others.py, whose lines have the same names.
var benchSizes = []struct {
	name  string
	bytes int64
}{{"512B", 512}, {"1MiB", 1 << 20}, {"64MiB", 64 << 20}}

// liveSize is the size of live block i: 512 B to 1 MiB in a fixed scrambled order.
func liveSize(i int) int64 { return 512 * int64(1+i*1103515245%2048) }

// benchAllocFree measures one allocation and free of each size, with and
// without other live blocks.
func benchAllocFree[T any](b *testing.B, who string, alloc func(int64) (T, error), free func(T) error) {
	for _, live := range []int{0, 10_000} {
		var keep []T
		for i := range live {
			keep = append(keep, must[T](b)(alloc(liveSize(i))))
		}
		for _, size := range benchSizes {
			b.Run(fmt.Sprintf("who=%s/size=%s/live=%d", who, size.name, live), func(b *testing.B) {
				for b.Loop() {
					p, err := alloc(size.bytes)
					if err != nil {
						b.Fatal(err)
					}
					if err := free(p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		for _, p := range keep {
			ok(b, free(p))
		}
	}
}

func BenchmarkAllocFree(b *testing.B) {
	d := open(b)
	benchAllocFree(b, "cuMemAlloc",
		func(n int64) (uintptr, error) { return memAlloc(d, n) },
		func(p uintptr) error { return memFree(d, p) })

	s := must[*Stream](b)(d.NewStream())
	driver := must[*DriverPool](b)(d.NewDriverPool(-1))
	benchAllocFree(b, "cuMemAllocAsync",
		func(n int64) (uintptr, error) { return driver.alloc(n, s) },
		func(p uintptr) error { return driver.free(p, s) })
	ok(b, s.Synchronize())
	ok(b, driver.Close())

	p := benchPool(b, d)
	benchAllocFree(b, "eagergc-block",
		func(n int64) (pool.Block, error) { return p.Alloc(n, s.ID()) },
		func(x pool.Block) error { p.Free(x); return nil })
	benchAllocFree(b, "eagergc-array",
		func(n int64) (array.Array[byte], error) { return array.New[byte](p, int(n), array.On(s.ID())) },
		func(a array.Array[byte]) error { a.Free(); return nil })
}

// BenchmarkSegment measures what a pool pays for a segment that it takes and gives back.
func BenchmarkSegment(b *testing.B) {
	up := open(b).segments()
	for _, mib := range []int64{2, 32, 256, 2048} {
		b.Run(fmt.Sprintf("MiB=%d", mib), func(b *testing.B) {
			for b.Loop() {
				p := must[uintptr](b)(up.Allocate(mib<<20, 0))
				ok(b, up.Release(p, mib<<20, 0))
			}
		})
	}
}

func byName(all []CallCount) map[string]CallCount {
	names := map[string]CallCount{}
	for _, c := range all {
		names[c.Name] = c
	}
	return names
}

// benchPool is a pool of device memory with a collector and the default policy.
func benchPool(b *testing.B, d *Device) *pool.Pool {
	c := must[*gc.Collector](b)(gc.New(gc.Config{}))
	p := must[*pool.Pool](b)(pool.New(pool.Config{Upstream: d.memory(), Space: d.Space(), Collector: c}))
	b.Cleanup(func() {
		p.Close()
		c.Close()
	})
	return p
}
