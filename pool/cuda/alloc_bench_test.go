package cuda

import (
	"fmt"
	"testing"
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
func benchAllocFree(b *testing.B, who string, alloc func(int64) (uintptr, error), free func(uintptr) error) {
	for _, live := range []int{0, 10_000} {
		var keep []uintptr
		for i := range live {
			keep = append(keep, must[uintptr](b)(alloc(liveSize(i))))
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
	pool := must[*DriverPool](b)(d.NewDriverPool(-1))
	benchAllocFree(b, "cuMemAllocAsync",
		func(n int64) (uintptr, error) { return pool.Alloc(n, s) },
		func(p uintptr) error { return pool.Free(p, s) })
	ok(b, s.Synchronize())
	ok(b, pool.Close())
}
