// Package pooltest tests that a pool keeps the promises of package pool, whatever its upstream and
// its options.
package pooltest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// A Maker returns a fresh pool under the given limits. The suite closes it.
type Maker func(t testing.TB, limits pressure.Limits) *pool.Pool

// Collect runs a cycle and returns when all that it has found dead is given back, which on a
// busy machine is after the cycle. It panics if that takes longer than a minute.
func Collect(c *gc.Collector) {
	c.Collect(policy.TriggerExplicit)
	for end := time.Now().Add(time.Minute); c.Stats().Pending > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			panic("pooltest: what a cycle has found dead is not given back")
		}
	}
}

// Run runs the whole suite. A pool of at least 64 MiB is needed.
func Run(t *testing.T, open Maker) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Maker)
	}{
		{"streams", streams},
		{"random", func(t *testing.T, open Maker) { random(t, open, 1, 2000) }},
		{"concurrent", func(t *testing.T, open Maker) { random(t, open, 8, 150) }},
		{"hard limit", hardLimit},
		{"soft limit", softLimit},
		{"close", closing},
		{"arrays", arrays},
		{"dropped arrays", droppedArrays},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// Warn returns a function for [pool.Config] under which a failure that the pool
// survives fails the test. A pool that is closed with live blocks is no failure.
func Warn(t testing.TB) func(error) {
	return func(err error) {
		if live := new(*pool.LiveError); !errors.As(err, live) {
			t.Error(err)
		}
	}
}

// start makes a pool, and checks at the end of the test that everything was given
// back.
func start(t testing.TB, open Maker, limits pressure.Limits) *pool.Pool {
	t.Helper()
	p := open(t, limits)
	t.Cleanup(func() {
		p.Close()
		Check(t, p)
		if s := p.Stats(); s.Live != 0 || s.Reserved != 0 || s.Segments != 0 {
			t.Errorf("left behind: %v live, %v reserved, %d segments", pressure.Bytes(s.Live), pressure.Bytes(s.Reserved), s.Segments)
		}
	})
	return p
}

// Check tests that the counts of a pool agree with each other. No goroutine may use the
// pool meanwhile.
func Check(t testing.TB, p *pool.Pool) {
	t.Helper()
	s := p.Stats()
	if s.Live < 0 || s.Live > s.Reserved || s.Cached != s.Reserved-s.Live || s.Live != s.Allocated-s.Freed {
		t.Errorf("counts do not agree: %+v", s)
	}
	if s.LivePeak < s.Live || s.ReservedPeak < s.Reserved || s.Largest > s.Cached {
		t.Errorf("peaks do not agree: %+v", s)
	}
	if hard := s.Limits.Hard; hard > 0 && (s.ReservedPeak > hard || s.LivePeak > s.ReservedPeak) {
		t.Errorf("the hard limit of %d was passed: %+v", hard, s)
	}
	if s.FreeBlocks == 0 != (s.Largest == 0) || s.Fragmentation() < 0 || s.Fragmentation() > 1 {
		t.Errorf("cached pieces do not agree: %+v", s)
	}
}

func must(t testing.TB, p *pool.Pool, bytes int64) pool.Block {
	t.Helper()
	b, err := p.Alloc(bytes, 0)
	ok(t, err)
	return b
}

// stamp writes the block's identity to each 512 bytes of its memory, where that can be done.
func stamp(p *pool.Pool, b pool.Block) {
	for part := range slices.Chunk(p.Memory(b), 512) {
		if len(part) >= 8 {
			binary.LittleEndian.PutUint64(part[len(part)-8:], b.ID())
		}
	}
}

// stamped reports whether the memory is still as stamp left it.
func stamped(p *pool.Pool, b pool.Block) bool {
	for part := range slices.Chunk(p.Memory(b), 512) {
		if len(part) >= 8 && binary.LittleEndian.Uint64(part[len(part)-8:]) != b.ID() {
			return false
		}
	}
	return true
}

func streams(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	a, err := p.Alloc(4096, 1)
	ok(t, err)
	p.Free(a)
	b, err := p.Alloc(4096, 2)
	ok(t, err)
	if a.Addr == b.Addr && p.Stats().Hits > 0 {
		t.Error("memory of one stream went to another without waiting")
	}
	p.Use(b, 1) // work of another stream
	p.Free(b)
	ok(t, p.Synchronize())
	if s := p.Stats(); s.Waiting != 0 || s.Live != 0 {
		t.Errorf("after Synchronize: %+v", s)
	}
}

// someSize draws sizes over many orders of magnitude, some of them often.
func someSize(rng *rand.Rand) int64 {
	if rng.IntN(2) == 0 {
		return []int64{0, 511, 513, 4096, 1 << 20, 1<<20 + 1, 3 << 20, 10 << 20}[rng.IntN(8)]
	}
	return rng.Int64N(1 << rng.IntN(23))
}

// random has goroutines allocate, write, compare and free.
func random(t *testing.T, open Maker, goroutines uint64, steps int) {
	const hard = 64 << 20
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	var work sync.WaitGroup
	for seed := range goroutines {
		work.Add(1)
		go func() {
			defer work.Done()
			rng := rand.New(rand.NewPCG(seed, 2))
			var held []pool.Block
			for range steps {
				n := someSize(rng)
				b, err := p.Alloc(n, uint32(rng.IntN(3)))
				switch {
				case err == nil && (b.Bytes != n || b.Addr == 0 || b.Addr%512 != 0):
					t.Errorf("%d bytes: block %+v", n, b)
				case err == nil:
					stamp(p, b)
					held = append(held, b)
				case !errors.Is(err, pool.ErrOutOfMemory):
					t.Error(err)
				}
				for len(held) > 0 && (err != nil || len(held) > 100/int(goroutines) || rng.IntN(3) == 0) {
					k := rng.IntN(len(held))
					if !stamped(p, held[k]) {
						t.Errorf("%+v was overwritten", held[k])
					}
					p.Free(held[k])
					held[k] = held[len(held)-1]
					held, err = held[:len(held)-1], nil
				}
				if rng.IntN(100) == 0 {
					p.FreeAllBlocks()
				}
			}
			for _, b := range held {
				p.Free(b)
			}
		}()
	}
	work.Wait()
	Check(t, p)
}

func hardLimit(t *testing.T, open Maker) {
	const hard = 64 << 20
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	if s := p.Sample(); s.Limit != hard {
		t.Errorf("sample %+v does not have the limit", s)
	}
	// Cached memory of one size must make room for another, without a failure.
	for _, n := range []int64{1 << 20, 30 << 20, 512 << 10, 5 << 20} {
		var held []pool.Block
		for int64(len(held)+1)*n <= hard/2 {
			held = append(held, must(t, p, n))
		}
		for _, b := range held {
			p.Free(b)
		}
	}
	if s := p.Stats(); s.ReservedPeak > hard || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := p.Alloc(hard+1, 0); !errors.Is(err, pool.ErrOutOfMemory) {
		t.Errorf("more than the limit: %v", err)
	}
	Check(t, p)
}

func softLimit(t *testing.T, open Maker) {
	const soft = 8 << 20
	p := start(t, open, pressure.Limits{Soft: pressure.Limit{Bytes: soft}})
	b, c := must(t, p, 30<<20), must(t, p, 1000)
	p.Free(b)
	ok(t, p.Sync(nil, func() error { return nil }))
	if s := p.Stats(); s.Reserved > soft {
		t.Errorf("reserved %v after a sync point, soft limit %v", pressure.Bytes(s.Reserved), pressure.Bytes(soft))
	}
	p.Free(c)
}

func closing(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	a, b, array := must(t, p, 1000), must(t, p, 5<<20), made[int32](t, p, 100)
	p.Free(a)
	p.Close()
	if _, err := p.Alloc(1000, 0); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("allocation after Close: %v", err)
	}
	if err := array.Fill(7); err != nil {
		t.Errorf("an array outlives Close: %v", err)
	}
	stamp(p, b)
	if !stamped(p, b) {
		t.Error("a block does not outlive Close")
	}
	p.Free(b)
	array.Free()
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made returns an array, which must fit.
func made[T any](t testing.TB, p *pool.Pool, n int) array.Array[T] {
	t.Helper()
	a, err := array.New[T](p, n)
	ok(t, err)
	return a
}

func arrays(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	a, b := made[float32](t, p, 1000), made[float32](t, p, 1000)
	live := p.Stats().Live
	want, v := slices.Repeat([]float32{1, 2, 3, 4}, 250), a.View(5, 7)
	ok(t, errors.Join(a.CopyIn(want), v.Fill(9), b.CopyFrom(a)))
	want[5], want[6] = 9, 9
	for _, x := range []array.Array[float32]{a, b} {
		if got, err := x.ToSlice(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v of %v, %v", got, want, err)
		}
	}
	if p.Stats().Live != live {
		t.Error("a view counts its bytes again")
	}
	b.Free()
	a.Free()
	if s := p.Stats(); s.Live != 0 || s.Frees != 2 {
		t.Errorf("%d frees of 2 arrays, %d bytes live", s.Frees, s.Live)
	}
}

// drop makes arrays that nothing reaches any more.
//
//go:noinline
func drop(t *testing.T, p *pool.Pool, n, bytes int) {
	for range n {
		made[byte](t, p, bytes)
	}
}

func droppedArrays(t *testing.T, open Maker) {
	const hard = 64 << 20
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	drop(t, p, 50, 8<<20) // far more than fits
	view := made[byte](t, p, 8<<20).View(8<<20-1, 8<<20)
	collected := func(most int64) { // repeats the step, because one step may return before all dead memory is freed
		for end := time.Now().Add(time.Minute); p.Stats().Live > most; p.Reclaim(pool.StepCollect) {
			if time.Now().After(end) {
				t.Fatalf("%d bytes stay live", p.Stats().Live)
			}
		}
	}
	collected(16<<20 - 1)
	if s := p.Stats(); s.Live < 8<<20 || s.ReservedPeak > hard || s.Failures != 0 {
		t.Errorf("a view does not keep its base: %+v", s)
	}
	ok(t, view.Fill(3))
	runtime.KeepAlive(view)
	collected(0)
}
