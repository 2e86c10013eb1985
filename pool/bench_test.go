//go:build unix

package pool_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pool"
)

var (
	benchSizes = []int64{512, 1 << 20}
	keepSlice  []byte
)

// allocFree gets a block and gives it back.
func allocFree(p *pool.Pool, size int64) {
	x, _ := p.Alloc(size, 0)
	p.Free(x)
}

// One op is an allocation and the free of it. The pool's block is cached; touch=1
// writes one byte of every page, which is when the system maps fresh memory.
func BenchmarkAllocFree(b *testing.B) {
	for _, size := range benchSizes {
		var touch int
		pages := func(m []byte) {
			for i := 0; i < touch*len(m); i += 4096 {
				m[i] = 1
			}
		}
		from := func(p *pool.Pool) func() {
			return func() {
				x, _ := p.Alloc(size, 0)
				pages(p.Memory(x))
				p.Free(x)
			}
		}
		for _, way := range []struct {
			via string
			op  func()
		}{
			{"pool", from(open(b, pool.Config{}))},
			{"direct", from(open(b, pool.Config{Direct: true}))},
			{"mmap", func() { x, _ := pool.Host{}.Allocate(size, 0); pages(at(x, size)); pool.Host{}.Release(x, size, 0) }},
			{"slice", func() { keepSlice = make([]byte, size); pages(keepSlice) }},
		} {
			for touch = range 2 {
				b.Run(fmt.Sprintf("via=%s/bytes=%d/touch=%d", way.via, size, touch), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						way.op()
					}
				})
			}
		}
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Each goroutine does what BenchmarkAllocFree does. cpu-ns/op is the processor
// time of all of them for one op: the cost of contention, also on a busy machine. It may at most double from -cpu 1 to 2.
func BenchmarkAllocFreeParallel(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			p, before := open(b, pool.Config{}), cpuTime()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					allocFree(p, size)
				}
			})
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// What noting sites adds to an allocation and its free: rate=0 is off, at rate=1 each is noted.
func BenchmarkSites(b *testing.B) {
	for _, size := range []int64{512, 64 << 10, 1 << 20} {
		for _, rate := range []int64{0, pool.MaxBytes, pool.DefaultSites, 512 << 10, 1} {
			b.Run(fmt.Sprintf("bytes=%d/rate=%d", size, rate), func(b *testing.B) {
				p := open(b, pool.Config{Sites: rate})
				for b.Loop() {
					allocFree(p, size)
				}
			})
		}
	}
}
