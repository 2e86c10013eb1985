package cuda

import (
	"fmt"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
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
		func(n int64) (uintptr, error) { return driver.Alloc(n, s) },
		func(p uintptr) error { return driver.Free(p, s) })
	benchBulkFree(b, driver, s)
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

// BenchmarkMap measures what a pool pays for GiB of memory in chunks of a size:
// new ones that are mapped and given back, and ones that move.
func BenchmarkMap(b *testing.B) {
	d := open(b)
	const bytes = 1 << 30
	for _, mib := range []int64{2, 8, 32, 64, 128, 512} {
		for _, what := range []string{"new", "move"} {
			b.Run(fmt.Sprintf("what=%s/MiB=%d", what, mib), func(b *testing.B) {
				up := d.memory()
				base, _, err := up.Range(mib<<20, 0)
				ok(b, err)
				here, there := pool.Span{Addr: base, Bytes: bytes}, pool.Span{Addr: base + bytes, Bytes: bytes}
				if what == "move" {
					ok(b, up.Map([]pool.Span{here}, nil, 0))
				}
				before := byName(Calls())
				for b.Loop() {
					if what == "move" {
						ok(b, up.Map([]pool.Span{there}, []pool.Span{here}, 0))
						here, there = there, here
						continue
					}
					ok(b, up.Map([]pool.Span{here}, nil, 0))
					ok(b, up.Unmap(here))
				}
				for name, c := range byName(Calls()) {
					if n := c.Calls - before[name].Calls; n >= int64(b.N) {
						b.ReportMetric(float64(c.Time-before[name].Time)/float64(n), name+"-ns")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bytes/(mib<<20)), "ns/chunk")
				if what == "move" {
					ok(b, up.Unmap(here))
				}
				ok(b, up.FreeRange(base))
			})
		}
	}
}

func byName(all []CallCount) map[string]CallCount {
	names := map[string]CallCount{}
	for _, c := range all {
		names[c.Name] = c
	}
	return names
}

// benchBulkFree measures what a collection does: it frees many blocks in a row.
func benchBulkFree(b *testing.B, driver *DriverPool, s *Stream) {
	b.Run("who=cuMemAllocAsync/bulk=10000", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			var all []uintptr
			for i := range 10_000 {
				all = append(all, must[uintptr](b)(driver.Alloc(liveSize(i), s)))
			}
			ok(b, s.Synchronize())
			b.StartTimer()
			for _, p := range all {
				ok(b, driver.Free(p, s))
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/free")
	})
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

// BenchmarkParallel shows how allocation and free scale: run it with -cpu.
func BenchmarkParallel(b *testing.B) {
	d := open(b)
	p := benchPool(b, d)
	for _, size := range benchSizes {
		b.Run("who=eagergc-block/size="+size.name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				s := must[*Stream](b)(d.NewStream())
				for pb.Next() {
					x, err := p.Alloc(size.bytes, s.ID())
					if err != nil {
						b.Error(err)
						return
					}
					p.Free(x)
				}
			})
		})
	}
}

// BenchmarkManagedElement measures what a program pays to read one element of
// managed memory on the host: with a call for each, or of a slice that it has. Who
// reads waits for the work that used the memory; here there is none left.
func BenchmarkManagedElement(b *testing.B) {
	d := open(b)
	p := newPool(b, d.Managed(), pressure.Managed, false)
	a := must[array.Array[float32]](b)(array.New[float32](p, 1024))
	ok(b, a.Fill(1))
	ok(b, d.Synchronize())
	b.Run("call=each", func(b *testing.B) {
		sum := float32(0)
		for i := 0; b.Loop(); i++ {
			ok(b, a.Do(func(x []float32) error { sum += x[i&1023]; return nil }))
		}
		elements = sum
	})
	b.Run("call=one", func(b *testing.B) {
		ok(b, a.Do(func(x []float32) error {
			sum := float32(0)
			for i := 0; b.Loop(); i++ {
				sum += x[i&1023]
			}
			elements = sum
			return nil
		}))
	})
}

var elements float32 // so that nothing is left out
