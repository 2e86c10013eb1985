package gc

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// BenchmarkOwn is Own and a release: soon, by hand; after 1000 younger objects,
// so that each needs a weak pointer; or by a cycle. An owner of 64 bytes shares a
// span with 128 others.
func BenchmarkOwn(b *testing.B) {
	type owner struct {
		_ *owner
		_ [7]uint64
	}
	free := func(uintptr) {}
	soon := func(c *Collector) { Own(c, new(owner), 64, free, 1).Release() }
	b.Run("release=soon", func(b *testing.B) {
		c := newCollector(b, Config{Policy: policy.Spec{}.New()})
		b.ReportAllocs()
		for b.Loop() {
			soon(c)
		}
	})
	b.Run("release=soon/goroutines=procs", func(b *testing.B) {
		c := newCollector(b, Config{Policy: policy.Spec{}.New()})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				soon(c)
			}
		})
	})
	b.Run("release=later", func(b *testing.B) {
		c := newCollector(b, Config{Policy: policy.Spec{}.New()})
		var held [1000]struct {
			Handle
			*owner
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h := &held[i%len(held)]
			h.Release()
			h.owner = new(owner)
			h.Handle = Own(c, h.owner, 64, free, 1)
		}
	})
	b.Run("release=cycle", func(b *testing.B) {
		c := newCollector(b, Config{Policy: policy.Spec{}.New()})
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			Own(c, new(owner), 64, free, 1)
			if i%100_000 == 99_999 {
				c.Collect(policy.TriggerExplicit)
			}
		}
	})
}

// BenchmarkTrack is what a pool pays for an array that is freed by hand.
func BenchmarkTrack(b *testing.B) {
	c := newCollector(b, Config{Policy: policy.Spec{}.New()})
	r := NewWeakRegistry(c.own().gate, 1<<20, func(Slot, uint64, int64) {})
	owner := new(thing)
	b.Run("owner=reused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Untrack(Track(r, owner, 64, uint64(1)))
		}
	})
	b.Run("owner=new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Untrack(Track(r, new(thing), 64, uint64(1)))
		}
	})
}

// BenchmarkPoint is a point that does not collect.
func BenchmarkPoint(b *testing.B) {
	for _, name := range []string{"never", "cudajl"} {
		c := newCollector(b, Config{Policy: policy.MustParse(name).New()})
		g := c.NewGate(&level{pressure.Sample{Live: 1 << 20, Limit: 1 << 30}})
		b.Run("at=allocation/policy="+name, func(b *testing.B) {
			for b.Loop() {
				g.Allocating(1<<20, 4096)
			}
		})
		place, wait := &WaitPlace{Name: "step"}, func() error { return nil }
		b.Run("at=sync/policy="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Sync(place, wait)
			}
		})
	}
}

// BenchmarkFacts repeats the facts about the runtime that the collector is built
// on; what one cycle costs against the Go heap is in package
// cmd/replay/live's Calibrate. They are the yardstick for the others on a busy machine.
func BenchmarkFacts(b *testing.B) {
	start := time.Now()
	b.Run("of=time.Since", func(b *testing.B) {
		for b.Loop() {
			time.Since(start)
		}
	})
	b.Run("of=metrics.Read", func(b *testing.B) {
		r := newGoRuntime()
		for b.Loop() {
			r.read()
		}
	})
	b.Run("of=progress", func(b *testing.B) {
		var s progressReader
		for b.Loop() {
			s.read()
		}
	})
	b.Run("of=ReadMemStats", func(b *testing.B) {
		var m runtime.MemStats
		for b.Loop() {
			runtime.ReadMemStats(&m)
		}
	})
	b.Run("of=weak.Make", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			weak.Make(new([8]*int))
		}
	})
	b.Run("of=AddCleanup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p := new([8]*int)
			c := runtime.AddCleanup(p, func(int) {}, 0)
			c.Stop()
		}
	})
	b.Run("of=runtime.GC", func(b *testing.B) {
		for b.Loop() {
			runtime.GC()
		}
	})
}

// BenchmarkSettleWalk walks a registry in which nothing is dead.
func BenchmarkSettleWalk(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			c := newCollector(b, Config{Policy: policy.Spec{}.New()})
			r := NewWeakRegistry(c.own().gate, 1<<20, func(Slot, uint64, int64) {})
			keep := make([]*thing, n)
			for i := range keep {
				keep[i] = new(thing)
				Track(r, keep[i], 64, uint64(i))
			}
			c.Collect(policy.TriggerExplicit)
			cycle := c.newCollection(policy.TriggerExplicit, policy.Decision{}, nil)
			for b.Loop() {
				r.walk(cycle)
			}
			if len(cycle.batches) > 0 {
				b.Fatal("reachable objects found dead")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
			runtime.KeepAlive(keep)
		})
	}
}

// A node makes a Go heap of pointers: 48 bytes each.
type node struct {
	left, right *node
	_           [4]uint64
}

func tree(depth int) *node {
	if depth == 0 {
		return new(node)
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

// BenchmarkSaturated shows, with busy goroutines and 12 MiB of Go heap with
// pointers, when a dropped object's memory is back: by an overlapped cycle, and
// by waiting for runtime.GC to return. Beside them is the mark alone, as the
// runtime's own clock has it.
func BenchmarkSaturated(b *testing.B) {
	for _, perCore := range []int{0, 1, 2} {
		busy := perCore * runtime.GOMAXPROCS(0)
		b.Run(fmt.Sprintf("busy=%d", busy), func(b *testing.B) {
			heap := tree(17)
			var stop atomic.Bool
			defer stop.Store(true)
			for range busy {
				go func() {
					for !stop.Load() {
					}
				}()
			}
			b.Run("wait=mark", func(b *testing.B) { medianOf(b, runtimeMark) })
			b.Run("wait=settled", func(b *testing.B) {
				c := newCollector(b, Config{Policy: policy.Spec{}.New()})
				medianOf(b, func() time.Duration { return overlapped(c) })
			})
			b.Run("wait=runtime.GC", func(b *testing.B) {
				medianOf(b, func() time.Duration {
					began := time.Now()
					runtime.GC()
					return time.Since(began)
				})
			})
			runtime.KeepAlive(heap)
		})
	}
}

// overlapped drops an object, starts a cycle beside the caller, and returns
// the time until the object's memory is back.
func overlapped(c *Collector) time.Duration {
	began := time.Now()
	back := make(chan struct{})
	ownFunc(c, new(thing), 64, func() { close(back) })
	c.mu.Lock()
	c.obey(policy.Decision{Action: policy.Overlap}, c.own().gate, c.Now())
	c.mu.Unlock()
	<-back
	took := time.Since(began)
	c.Wait()
	return took
}

// runtimeMark returns the time from the call of runtime.GC to the end of its
// mark, by the time stamp that the runtime keeps of it.
func runtimeMark() time.Duration {
	began := time.Now()
	var s progressReader
	before, done := s.read().cycles, make(chan struct{})
	go func() {
		defer close(done)
		runtime.GC()
	}()
	for s.read().cycles == before {
		time.Sleep(50 * time.Microsecond)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	took := time.Unix(0, int64(m.LastGC)).Sub(began)
	<-done
	return took
}

func medianOf(b *testing.B, f func() time.Duration) {
	var all []float64
	for b.Loop() {
		all = append(all, float64(f()))
	}
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2], "p50-ns")
}

// BenchmarkOwners is a million owners of 64 bytes: the Go heap that tracking each
// takes, without the owner itself, and how much longer they make a cycle. AddCleanup
// is what a program would use without us; so many cleanups take memory that no
// metric of the heap shows.
func BenchmarkOwners(b *testing.B) {
	const n = 1_000_000
	type owner struct {
		_ *owner
		_ [7]uint64
	}
	free := func(uintptr) {}
	for name, own := range map[string]func(*Collector, *owner){
		"none":       func(*Collector, *owner) {},
		"own":        func(c *Collector, o *owner) { Own(c, o, 64, free, 1) },
		"AddCleanup": func(_ *Collector, o *owner) { runtime.AddCleanup(o, free, 1) },
	} {
		b.Run("way="+name, func(b *testing.B) {
			c := embed(b, Config{Policy: policy.Spec{}.New()})
			owners := make([]*owner, n)
			for i := range owners {
				owners[i] = new(owner)
			}
			before := heapLive()
			for _, o := range owners {
				own(c, o)
			}
			c.Collect(policy.TriggerExplicit)
			perObject := float64(heapLive()-before) / n
			medianOf(b, func() time.Duration {
				began := time.Now()
				c.Collect(policy.TriggerExplicit)
				return time.Since(began)
			})
			b.ReportMetric(perObject, "heap-B/object")
			runtime.KeepAlive(owners)
		})
	}
}

func heapLive() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
