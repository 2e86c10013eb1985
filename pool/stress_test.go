package pool_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// flaky is host memory whose calls fail, panic and take long, while it is rough.
type flaky struct {
	pool.Host
	mapped atomic.Int64
	faults atomic.Int64
	rough  atomic.Bool
}

var errFlaky = errors.New("flaky")

func (f *flaky) fails(percent int) error {
	n := rand.IntN(100)
	if !f.rough.Load() || n >= percent {
		return nil
	}
	f.faults.Add(1)
	switch n % 4 {
	case 0:
		panic(errFlaky)
	case 1:
		time.Sleep(100 * time.Microsecond)
	}
	return errFlaky
}

func (f *flaky) Allocate(n int64, stream uint32) (uintptr, error) {
	if err := f.fails(20); err != nil {
		return 0, err
	}
	f.mapped.Add(n)
	return f.Host.Allocate(n, stream)
}

func (f *flaky) Release(addr uintptr, n int64, stream uint32) error {
	if err := f.fails(20); err != nil {
		return err
	}
	f.mapped.Add(-n)
	return f.Host.Release(addr, n, stream)
}

func (f *flaky) Synchronize() error { return f.fails(5) }
func (f *flaky) Info() (pressure.Info, error) {
	if err := f.fails(20); err != nil {
		return pressure.Info{}, err
	}
	return f.Host.Info()
}

// TestStress has goroutines use pool, arrays and a collector in every way at once: they fill memory and look whether it has changed, free or
// drop it, wait, own memory of their own, and meddle as an operator does, over an upstream that fails.
// Then pool and collector are closed under them. At the end nothing is left.
func TestStress(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		for _, rough := range []bool{false, true} {
			t.Run(fmt.Sprintf("procs=%d/rough=%v", procs, rough), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				c, err := gc.New(gc.Config{Space: pressure.Pinned, Limit: mib})
				if err != nil {
					t.Fatal(err)
				}
				up := new(flaky)
				up.rough.Store(rough)
				p, err := pool.New(pool.Config{Upstream: up, Collector: c, Sites: int64(procs-1) * 1000, Limits: hard(48 * mib), Warn: func(error) {}})
				if err != nil {
					t.Fatal(err)
				}
				s := &shared{t: t, p: p, c: c}
				together(8, func(k int) {
					(&worker{shared: s, rng: rand.New(rand.NewPCG(rand.Uint64(), 0)), stream: uint32(k % 3)}).run()
				})()
				up.rough.Store(false)
				p.SetLimits(hard(48 * mib))
				waitFor(t, "nothing is live", func() bool {
					pooltest.Collect(c)
					p.Synchronize()
					return p.Stats().Live == 0 && s.owned.Load() == s.given.Load()
				})
				pooltest.Check(t, p)
				if s.wrong.Load() > 0 || rough && up.faults.Load() == 0 {
					t.Errorf("%d owned objects were given back twice or while in use, %d faults", s.wrong.Load(), up.faults.Load())
				}
				wait := together(4, func(int) {
					for b, err := p.Alloc(4096, 0); err == nil; b, err = p.Alloc(4096, 0) {
						p.Free(b)
					}
				})
				c.Close()
				p.Close()
				wait()
				pooltest.Check(t, p)
				if left, s := up.mapped.Load(), p.Stats(); left != 0 || s.Reserved != 0 || s.Live != 0 {
					t.Errorf("the upstream holds %d bytes, the pool counts %+v", left, s)
				}
				if err := c.Err(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// shared is what the goroutines share.
type shared struct {
	t                   *testing.T
	p                   *pool.Pool
	c                   *gc.Collector
	owned, given, wrong atomic.Int64 // wrong: given back twice, or while in use
}

type worker struct {
	*shared
	rng    *rand.Rand
	stream uint32
	held   []filled
	owner  *owner
}

// filled is an array or a block, filled with one byte.
type filled struct {
	array array.Array[byte]
	block pool.Block // if the array is none
	with  byte
}

type owner struct {
	handle gc.Handle
	state  *struct{ done, given atomic.Bool } // which the function that gives back may refer to
}

func (s *shared) own() *owner {
	o := &owner{state: new(struct{ done, given atomic.Bool })}
	s.owned.Add(1)
	o.handle = gc.Own(s.c, o, 1000, func(state *struct{ done, given atomic.Bool }) {
		s.given.Add(1)
		if !state.done.Load() || state.given.Swap(true) {
			s.wrong.Add(1)
		}
	}, o.state)
	return o
}

func (w *worker) run() {
	steps := 3000
	if testing.Short() {
		steps = 600
	}
	place := &gc.WaitPlace{Name: "step"}
	for range steps {
		x, size := filled{with: byte(w.rng.Uint32())}, 1+w.rng.IntN(1<<(4+w.rng.IntN(17)))
		err := errors.New("none was asked for")
		switch k := w.rng.IntN(100); {
		case k < 25 && len(w.held) < 24:
			if x.array, err = array.New[byte](w.p, size, array.On(w.stream)); err == nil {
				err = x.array.Fill(x.with)
			}
		case k < 45 && len(w.held) < 24:
			if x.block, err = w.p.Alloc(int64(size), w.stream); err == nil {
				copy(w.p.Memory(x.block), bytes.Repeat([]byte{x.with}, size))
			}
		case k < 75 && len(w.held) > 0:
			w.drop()
		case k < 80 && len(w.held) > 0:
			x := &w.held[0]
			w.p.Use(x.block, uint32(w.rng.IntN(4)))
			x.array.Reach(func(m array.Memory) error { m.UsedBy(uint32(w.rng.IntN(4))); return nil })
			x.array = x.array.View(0, x.array.Len()/2) // keeps the whole
		case k < 90:
			w.disown()
			w.owner = w.own()
		case k < 97:
			w.p.Sync(place, func() error { runtime.Gosched(); return nil })
		case w.rng.IntN(8) == 0:
			w.meddle()
		}
		if err == nil {
			w.held = append(w.held, x)
		}
	}
	for len(w.held) > 0 {
		w.drop()
	}
	w.disown()
}

func (w *worker) disown() {
	if o := w.owner; o != nil {
		o.state.done.Store(true)
		if w.rng.IntN(2) == 0 {
			o.handle.Release()
		}
		runtime.KeepAlive(o)
	}
	w.owner = nil
}

func (w *worker) meddle() {
	switch w.rng.IntN(6) {
	case 0:
		w.c.SetPolicy(policy.MustParse([]string{"pacer", "cudajl", "never", "threshold:0.8", "always"}[w.rng.IntN(5)]).New())
	case 1:
		w.p.Reclaim(pool.Step(w.rng.IntN(int(pool.StepDrop) + 1)))
	case 2:
		w.c.Collect(policy.TriggerExplicit)
	case 3:
		w.p.SetLimits(pressure.Limits{Hard: pressure.Limit{Bytes: int64(24+w.rng.IntN(24)) * mib}, Soft: pressure.Limit{Bytes: int64(w.rng.IntN(48)) * mib}})
	case 4:
		w.c.Snapshot()
		for _, h := range w.p.Holders(10) {
			if h.Blocks < 0 {
				w.t.Errorf("%+v", h)
			}
		}
	case 5:
		w.c.Due()
		w.c.Reap()
	}
}

// drop looks at one that is held, and frees it, or leaves it to the collector.
func (w *worker) drop() {
	i, last := w.rng.IntN(len(w.held)), len(w.held)-1
	x := w.held[i]
	w.held[i], w.held[last] = w.held[last], filled{}
	w.held = w.held[:last]
	look := func(b []byte) error {
		if n := bytes.Count(b, []byte{x.with}); n != len(b) {
			w.t.Errorf("%d of %d bytes were changed", len(b)-n, len(b))
		}
		return nil
	}
	if x.block != (pool.Block{}) {
		look(w.p.Memory(x.block))
		w.p.Free(x.block)
		return
	}
	if err := x.array.Do(look); err != nil {
		w.t.Error(err)
	}
	if w.rng.IntN(2) == 0 {
		x.array.Free()
	}
}

// TestAFreeThatRacesCloseLeavesNothing: whichever comes first, nothing is reserved when both are over.
func TestAFreeThatRacesCloseLeavesNothing(t *testing.T) {
	for range 300 {
		p, err := pool.New(pool.Config{Upstream: newDevice(1 << 40), Warn: func(error) {}})
		if err != nil {
			t.Fatal(err)
		}
		var all []pool.Block
		for k := range 4 {
			all = append(all, alloc(t, p, int64(65+k)*mib)) // more than a cache keeps
		}
		together(5, func(k int) {
			if k < 4 {
				p.Free(all[k])
			} else {
				p.Close()
			}
		})()
		if s := p.Stats(); s.Reserved != 0 || s.Live != 0 {
			t.Fatalf("%+v", s)
		}
	}
}

// TestWhatACycleFreesIsServedAgain: thousands of blocks, freed by another goroutine, are there for the next allocations, most of them without a search, and as one piece for a block that needs it.
func TestWhatACycleFreesIsServedAgain(t *testing.T) {
	p := open(t, pool.Config{Upstream: newDevice(1 << 40), Limits: hard(1 << 30)})
	sizes := []int64{512, 4096, 8192, 4096}
	fill := func() (all []pool.Block) {
		for i := range 10_000 {
			all = append(all, alloc(t, p, sizes[i%len(sizes)]))
		}
		return all
	}
	free := func(all []pool.Block) {
		together(1, func(int) {
			for _, b := range all {
				p.Free(b)
			}
		})()
	}
	for range 3 { // what went back to the upstream takes no room in the depot
		free(fill())
		p.FreeAllBlocks()
	}
	free(fill())
	for range 3 {
		before := p.Stats()
		again := fill()
		after := p.Stats()
		if missed := after.Allocs - before.Allocs - (after.Hits - before.Hits); missed > 10_000/4 || after.Reserved != before.Reserved {
			t.Errorf("%d of 10,000 allocations were misses, %d bytes more were reserved", missed, after.Reserved-before.Reserved)
		}
		free(again)
	}
	p.Free(alloc(t, p, 1<<30-8*mib))
	if got := p.Stats(); got.Refusals != 0 || got.ReservedPeak > 1<<30 {
		t.Errorf("%d refusals, %d bytes reserved", got.Refusals, got.ReservedPeak)
	}
	p.Free(alloc(t, p, 8*mib)) // a cache that is full of a large piece still serves small ones
	before := p.Stats()
	for range 1000 {
		p.Free(alloc(t, p, 4096))
	}
	if hits := p.Stats().Hits - before.Hits; hits < 900 {
		t.Errorf("%d of 1000 small allocations were served by the cache", hits)
	}
}

// TestCachesShareTheLimit: together they keep no more than it, and what they count in advance is at
// most a 32nd of it.
func TestCachesShareTheLimit(t *testing.T) {
	p := open(t, pool.Config{Upstream: newDevice(1 << 40), Limits: hard(64 * mib)})
	for range 2 {
		p.Free(alloc(t, p, 30*mib))
	}
	if s := p.Stats(); s.Hits != 0 {
		t.Errorf("one cache keeps 30 of 64 MiB: %+v", s)
	}
	p.ResetPeaks()
	start, n := make(chan struct{}), 256
	wait := together(n, func(int) { <-start; p.Free(alloc(t, p, 512)) })
	close(start)
	if wait(); p.Stats().LivePeak > int64(n)*512+64*mib/32 {
		t.Errorf("a peak of %d bytes, of which %d were handed out at most", p.Stats().LivePeak, n*512)
	}
}

// TestCachesServeEachOther: what one goroutine frees, others get without a call of the upstream; the counts are exact at every rest.
func TestCachesServeEachOther(t *testing.T) {
	up := newDevice(64 * mib)
	p := open(t, pool.Config{Upstream: up})
	var mu sync.Mutex
	var all []pool.Block
	for round := range 50 {
		for k := range 8 {
			together(1, func(int) {
				defer mu.Unlock()
				mu.Lock()
				for i := range 16 {
					if k%2 == 0 || len(all) == 0 {
						all = append(all, alloc(t, p, int64(i%3+1)*64*kib))
					} else {
						p.Free(all[len(all)-1])
						all = all[:len(all)-1]
					}
				}
			})()
			var live int64
			for _, b := range all {
				live += b.Bytes
			}
			if s := p.Sample(); s.Live != live || p.Stats().Live != live {
				t.Fatalf("round %d: %d bytes live, want %d", round, s.Live, live)
			}
		}
	}
	if up.used > 16*mib {
		t.Errorf("%d bytes for at most %d at a time", up.used, 64*128*kib)
	}
	for _, b := range all {
		p.Free(b)
	}
}
