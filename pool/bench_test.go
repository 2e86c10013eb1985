//go:build unix

package pool

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool/internal/cmalloc"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

func newPool(tb testing.TB, cfg Config) *Pool {
	tb.Helper()
	p, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Close()
		if s := p.Stats(); s.Live != 0 || s.Reserved != 0 {
			tb.Errorf("left behind: %d bytes live, %d reserved", s.Live, s.Reserved)
		}
	})
	return p
}

var benchSizes = []int64{512, 1 << 20}

// One op is an allocation and the free of it. The pool's block is cached; touch=1
// writes one byte of every page, which is when the system maps fresh memory.
func BenchmarkAllocFree(b *testing.B) {
	for _, size := range benchSizes {
		for via, op := range allocators(b, size) {
			for touch := range 2 {
				b.Run(fmt.Sprintf("via=%s/bytes=%d/touch=%d", via, size, touch), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						op(touch == 1)
					}
				})
			}
		}
	}
}

var keepSlice []byte

// allocators returns ways to get and give back size bytes.
func allocators(b *testing.B, size int64) iter.Seq2[string, func(touch bool)] {
	p := newPool(b, Config{})
	direct := newPool(b, Config{Direct: true})
	fromPool := func(p *Pool) func(bool) {
		return func(touch bool) {
			x, _ := p.Alloc(size, 0)
			if touch {
				touchPages(p.Memory(x))
			}
			p.Free(x)
		}
	}
	return func(yield func(string, func(bool)) bool) {
		yield("pool", fromPool(p))
		yield("direct", fromPool(direct))
		if cmalloc.Available {
			yield("malloc", func(touch bool) {
				x := cmalloc.Malloc(size)
				if touch {
					touchPages(unsafe.Slice((*byte)(x), size))
				}
				cmalloc.Free(x)
			})
		}
		yield("mmap", func(touch bool) {
			addr, _ := Host{}.Allocate(size, 0)
			if touch {
				touchPages(memory(addr, size))
			}
			Host{}.Release(addr, size, 0)
		})
		yield("slice", func(touch bool) {
			keepSlice = make([]byte, size)
			if touch {
				touchPages(keepSlice)
			}
		})
	}
}

func touchPages(m []byte) {
	for i := 0; i < len(m); i += 4096 {
		m[i] = 1
	}
}

// Each goroutine does what BenchmarkAllocFree does. cpu-ns/op is the processor
// time of all of them for one op: what contention costs, also on a machine whose
// cores are busy with other things. It may at most double from -cpu 1 to 2.
func BenchmarkAllocFreeParallel(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			p := newPool(b, Config{})
			before := cpuTime()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					x, _ := p.Alloc(size, 0)
					p.Free(x)
				}
			})
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// One op is an allocation and the free of it in a deeper call, where the
// goroutine looks into another cache. Run it with -cpu 16: there are 64 caches.
func BenchmarkFreeDeeper(b *testing.B) {
	p := newPool(b, Config{})
	var x Block
	free := func() { p.Free(x) }
	for b.Loop() {
		x, _ = p.Alloc(1<<20, 0)
		deeper(free)
	}
}

// deeper calls f beyond where lockCache would take the caller to be.
//
//go:noinline
func deeper(f func()) byte {
	var frame [2048]byte
	f()
	return frame[len(frame)-1]
}

// One op is an allocation and the free of it, in a goroutine whose cache was
// filled with blocks of other sizes.
func BenchmarkFullFront(b *testing.B) {
	p := newPool(b, Config{})
	large, _ := p.Alloc(keepMax, 0) // later in the core: no growth, which empties caches
	held := make([]Block, 1100)
	for i := range held {
		held[i], _ = p.Alloc(512*int64(1+i%250), 0)
	}
	for _, x := range append(held, large) {
		p.Free(x)
	}
	for b.Loop() {
		x, _ := p.Alloc(keepMax, 0)
		p.Free(x)
	}
}

// One op is an allocation by a program that frees nothing itself: cycles do, in
// a goroutine of theirs, thousands of blocks at a time. With beside=true the
// program goes on meanwhile.
func BenchmarkCollected(b *testing.B) {
	const cycle = 8192
	sizes := []int64{512, 4000, 4000, 8192, 4000, 8192, 512, 4000, 256 << 10}
	for _, beside := range []bool{false, true} {
		b.Run(fmt.Sprintf("beside=%v", beside), func(b *testing.B) {
			p := newPool(b, Config{})
			dead, done := make(chan []Block), make(chan []Block, 3)
			for range 3 {
				done <- make([]Block, 0, cycle)
			}
			go func() {
				defer close(done)
				for blocks := range dead {
					for _, x := range blocks {
						p.Free(x)
					}
					done <- blocks[:0]
				}
			}()
			fresh := <-done
			for n := 0; b.Loop(); n++ {
				x, _ := p.Alloc(sizes[n%len(sizes)], 0)
				if fresh = append(fresh, x); len(fresh) == cycle {
					b.StopTimer()
					dead <- fresh
					fresh = <-done
					if !beside {
						for len(done) < 2 {
							runtime.Gosched()
						}
					}
					b.StartTimer()
				}
			}
			dead <- fresh
			close(dead)
			for range done {
			}
		})
	}
}

// A block that is in no cache: it is taken from the core and given back to it.
func BenchmarkMiss(b *testing.B) {
	p := newPool(b, Config{})
	for b.Loop() {
		x, _ := p.Alloc(keepMax+1, 0)
		p.Free(x)
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Beside n live blocks: order=stack frees and allocates the same block,
// order=random replaces one of the n, wherever it lies.
func BenchmarkLiveBlocks(b *testing.B) {
	for _, order := range []string{"stack", "random"} {
		for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
			name := fmt.Sprintf("order=%s/live=%d", order, n)
			b.Run("via=pool/"+name, func(b *testing.B) {
				p := newPool(b, Config{})
				replace(b, order, n, func() Block { x, _ := p.Alloc(512, 0); return x }, p.Free)
			})
			if cmalloc.Available {
				b.Run("via=malloc/"+name, func(b *testing.B) {
					replace(b, order, n, func() unsafe.Pointer { return cmalloc.Malloc(512) }, cmalloc.Free)
				})
			}
		}
	}
}

func replace[B any](b *testing.B, order string, n int, alloc func() B, free func(B)) {
	held := make([]B, n)
	for i := range held {
		held[i] = alloc()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		i := 0
		if order == "random" {
			i = rng.IntN(n)
		}
		free(held[i])
		held[i] = alloc()
	}
	for _, x := range held {
		free(x)
	}
}

// One op is what a collector reads of the pool at each decision, after many
// goroutines, such as those of cycles, have used the pool once. Run it with -cpu 16.
func BenchmarkReading(b *testing.B) {
	p := newPool(b, Config{})
	var all sync.WaitGroup
	for range 1000 {
		all.Add(1)
		go func() {
			defer all.Done()
			x, _ := p.Alloc(512, 0)
			p.Free(x)
		}()
	}
	all.Wait()
	for b.Loop() {
		p.Sample()
		p.Allocated()
	}
}

// What a point costs that does not collect: at an allocation, compare with
// BenchmarkAllocFree; at a sync, one op is Sync with nothing to wait for.
func BenchmarkPoint(b *testing.B) {
	open := func(b *testing.B) *Pool {
		c, err := gc.New(gc.Config{Policy: policy.MustParse("threshold:0.9").New()})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return newPool(b, Config{Collector: c, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 30}}})
	}
	for _, policy := range []string{"none", "threshold:0.9"} {
		b.Run("at=allocation/policy="+policy, func(b *testing.B) {
			p := newPool(b, Config{})
			if policy != "none" {
				p = open(b)
			}
			for b.Loop() {
				x, _ := p.Alloc(512, 0)
				p.Free(x)
			}
		})
	}
	b.Run("at=sync/policy=threshold:0.9", func(b *testing.B) {
		p := open(b)
		nothing := func() error { return nil }
		for b.Loop() {
			p.Sync(nil, nothing)
		}
	})
}

// What a recorder adds to an allocation and its free, which are two events. The
// writer is waited for off the clock: an event that is lost costs less.
func BenchmarkRecord(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("on=%v", on), func(b *testing.B) {
			p := newPool(b, Config{})
			var r *trace.Recorder
			if on {
				r = trace.NewRecorder(discard{}, trace.RecorderConfig{})
				defer r.Close()
				p.SetTrace(r)
			}
			for i := 1; b.Loop(); i++ {
				x, _ := p.Alloc(512, 0)
				p.Free(x)
				if i%(1<<12) == 0 {
					b.StopTimer()
					r.Flush()
					b.StartTimer()
				}
			}
			if r.Lost() > 0 {
				b.Errorf("lost %d events", r.Lost())
			}
		})
	}
}

// discard throws events away.
type discard struct{}

func (discard) WriteBatch(e []trace.Event, _ []string) (int, error) { return len(e), nil }
func (discard) Close() error                                        { return nil }

// What noting sites adds to an allocation and its free: rate=0 is off, at
// rate=never no block is ever sampled, at rate=1 each is.
func BenchmarkSites(b *testing.B) {
	for _, size := range []int64{512, 64 << 10, 1 << 20} {
		for _, c := range []struct {
			name string
			rate int64
		}{{"0", 0}, {"never", MaxBytes}, {"default", DefaultSites}, {"512KiB", 512 << 10}, {"1", 1}} {
			b.Run(fmt.Sprintf("bytes=%d/rate=%s", size, c.name), func(b *testing.B) {
				p := newPool(b, Config{Sites: c.rate})
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					x, _ := p.Alloc(size, 0)
					p.Free(x)
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// What a sample takes by the depth of the stack, of which 32 frames are kept.
func BenchmarkSiteDepth(b *testing.B) {
	var at func(depth int, do func())
	at = func(depth int, do func()) {
		if depth > 0 {
			at(depth-1, do)
		} else {
			do()
		}
	}
	for _, depth := range []int{1, 10, 20, 40} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			p := newPool(b, Config{Sites: 1})
			before := cpuTime()
			at(depth, func() {
				for b.Loop() {
					x, _ := p.Alloc(512, 0)
					p.Free(x)
				}
			})
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// What it takes to read the sites, beside a million live blocks.
func BenchmarkHolders(b *testing.B) {
	p := newPool(b, Config{Sites: 1})
	held := make([]Block, 1_000_000)
	for i := range held {
		held[i], _ = p.Alloc(512, 0)
	}
	for b.Loop() {
		p.Holders(10)
	}
	for _, x := range held {
		p.Free(x)
	}
}
