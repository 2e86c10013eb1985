// Package pooltest tests that a pool keeps the promises of package pool, whatever its upstream and
// its options.
package pooltest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
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
		{"bad free", badFree},
		{"statistics", statistics},
		{"random", func(t *testing.T, open Maker) { random(t, open, 1, 2000) }},
		{"concurrent", func(t *testing.T, open Maker) { random(t, open, 8, 150) }},
		{"hard limit", hardLimit},
		{"soft limit", softLimit},
		{"out of memory", outOfMemory},
		{"reclaimables", reclaimables},
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
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stamp writes the block's identity over its memory, where that can be done.
func stamp(p *pool.Pool, b pool.Block) {
	m := p.Memory(b)
	for i := 0; i+8 <= len(m); i += 512 {
		binary.LittleEndian.PutUint64(m[i:], b.ID())
	}
	if n := len(m); n >= 8 {
		binary.LittleEndian.PutUint64(m[n-8:], b.ID())
	}
}

// stamped says whether the memory is still as stamp left it.
func stamped(p *pool.Pool, b pool.Block) bool {
	m := p.Memory(b)
	for i := 0; i+16 <= len(m); i += 512 {
		if binary.LittleEndian.Uint64(m[i:]) != b.ID() {
			return false
		}
	}
	n := len(m)
	return n < 8 || binary.LittleEndian.Uint64(m[n-8:]) == b.ID()
}

func streams(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	a, err := p.Alloc(4096, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Free(a)
	b, err := p.Alloc(4096, 2)
	if err != nil {
		t.Fatal(err)
	}
	if a.Addr == b.Addr && p.Stats().Hits > 0 {
		t.Error("memory of one stream went to another without waiting")
	}
	p.Use(b, 1) // work of another stream
	p.Free(b)
	if err := p.Synchronize(); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Waiting != 0 || s.Live != 0 {
		t.Errorf("after Synchronize: %+v", s)
	}
}

func panics(f func()) (text string) {
	defer func() {
		if e := recover(); e != nil {
			text, _ = e.(string)
		}
	}()
	f()
	return ""
}

func badFree(t *testing.T, open Maker) {
	p, q := start(t, open, pressure.Limits{}), start(t, open, pressure.Limits{})
	b, other := must(t, p, 1000), must(t, q, 1000)
	p.Free(b)
	if text := panics(func() { p.Free(b) }); !strings.Contains(text, "double free") {
		t.Errorf("double free: %q", text)
	}
	again := must(t, p, 1000) // may have the address of b
	if text := panics(func() { p.Free(b) }); !strings.Contains(text, "double free") {
		t.Errorf("double free after reuse: %q", text)
	}
	moved := again
	moved.Addr += 512
	for name, bad := range map[string]pool.Block{"zero": {}, "other pool": other, "moved": moved} {
		if text := panics(func() { p.Free(bad) }); !strings.Contains(text, "not of this pool") && !strings.Contains(text, "of another pool") {
			t.Errorf("%s block: %q", name, text)
		}
	}
	p.Free(again)
	q.Free(other)
	Check(t, p)
}

func statistics(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	unit := sizeOf(t, p, 1000)
	a, b := must(t, p, 1000), must(t, p, 1000)
	p.Free(a)
	s := p.Stats()
	const ahead = 64 << 20 // see Stats; how much depends on where goroutines run
	if s.Live != unit || s.LivePeak < 2*unit || s.LivePeak > 2*unit+ahead || s.Allocs != 3 || s.Frees != 2 || s.Allocated != 3*unit || s.Freed != 2*unit {
		t.Errorf("%+v", s)
	}
	if sample := p.Sample(); sample.Live != s.Live || sample.Reserved != s.Reserved || sample.Space != p.Space() || p.Allocated() != s.Allocated {
		t.Errorf("sample %+v, allocated %d, stats %+v", sample, p.Allocated(), s)
	}
	p.ResetPeaks()
	if s := p.Stats(); s.LivePeak != unit || s.ReservedPeak != s.Reserved {
		t.Errorf("after reset: %+v", s)
	}
	p.Free(b)
	p.FreeAllBlocks()
	if s := p.Stats(); s.Reserved != 0 || s.FreeBlocks != 0 || s.Fragmentation() != 0 {
		t.Errorf("after FreeAllBlocks: %+v", s)
	}
	var report strings.Builder
	if err := p.Report(&report); err != nil || !strings.Contains(report.String(), "Memory pool usage: 0 B (0 B reserved)") {
		t.Errorf("report %q, %v", report.String(), err)
	}
}

// sizeOf returns the bytes that the pool counts for a block of n bytes.
func sizeOf(t testing.TB, p *pool.Pool, n int64) int64 {
	before := p.Stats().Live
	b := must(t, p, n)
	defer p.Free(b)
	return p.Stats().Live - before
}

// someSize draws sizes over many orders of magnitude, some of them often.
func someSize(rng *rand.Rand) int64 {
	if rng.IntN(2) == 0 {
		return []int64{0, 511, 513, 4096, 1 << 20, 1<<20 + 1, 3 << 20, 10 << 20}[rng.IntN(8)]
	}
	return rng.Int64N(1 << rng.IntN(23))
}

// random has goroutines allocate, write, compare and free, and looks at the limit meanwhile.
func random(t *testing.T, open Maker, goroutines uint64, steps int) {
	const hard = 64 << 20
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	stop := make(chan struct{})
	var work, watch sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if s := p.Sample(); s.Live > hard || s.Reserved > hard {
				t.Errorf("above the limit: %+v", s)
				return
			}
		}
	}()
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
	close(stop)
	watch.Wait()
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
	for n, want := range map[int64]error{pool.MaxBytes: pool.ErrOutOfMemory, pool.MaxBytes + 1: pool.ErrSize, -1: pool.ErrSize} {
		if _, err := p.Alloc(n, 0); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
	}
	Check(t, p)
}

func softLimit(t *testing.T, open Maker) {
	const soft = 8 << 20
	p := start(t, open, pressure.Limits{Soft: pressure.Limit{Bytes: soft}})
	b, c := must(t, p, 30<<20), must(t, p, 1000)
	p.Free(b)
	if err := p.Sync(nil, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Reserved > soft {
		t.Errorf("reserved %v after a sync point, soft limit %v", pressure.Bytes(s.Reserved), pressure.Bytes(soft))
	}
	p.Free(c)
}

func outOfMemory(t *testing.T, open Maker) {
	const hard = 64 << 20
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	b := must(t, p, 48<<20)
	_, err := p.Alloc(32<<20, 0)
	var oom *pool.OutOfMemoryError
	if !errors.As(err, &oom) || !errors.Is(err, pool.ErrOutOfMemory) {
		t.Fatalf("%T: %v", err, err)
	}
	if oom.Bytes < 32<<20 || oom.Sample.Live < 48<<20 || !strings.Contains(oom.Detail(), "Memory pool usage") || len(oom.Steps) < 6 {
		t.Errorf("%+v\n%s", oom, oom.Detail())
	}
	p.Free(b)
	p.Free(must(t, p, 32<<20))
	if s := p.Stats(); s.Refusals != 1 || s.Failures != 1 {
		t.Errorf("refusals %d, failures %d, want 1 and 1", s.Refusals, s.Failures)
	}
}

// A hoard is a cache of the program's that gives back when it must.
type hoard struct {
	p      *pool.Pool
	blocks []pool.Block
	purged int
	kept   pool.Block
	broken bool
}

func (h *hoard) Purge() {
	h.purged++
	if h.broken {
		panic("this cache is broken")
	}
	for _, b := range h.blocks {
		h.p.Free(b)
	}
	h.blocks = nil
}

func (h *hoard) Drop() { h.p.Free(h.kept) }

func reclaimables(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}})
	broken := &hoard{p: p, broken: true, kept: must(t, p, 8<<20)}
	whole := &hoard{p: p, blocks: []pool.Block{must(t, p, 16<<20)}, kept: must(t, p, 16<<20)}
	p.Register(broken)
	cancel := p.Register(whole)
	b := must(t, p, 26<<20) // takes a purge
	if whole.purged != 1 || len(whole.blocks) != 0 {
		t.Errorf("not purged: %+v", whole)
	}
	c := must(t, p, 32<<20) // takes a drop
	p.Free(b)
	p.Free(c)
	cancel()
	purged := whole.purged
	if _, err := p.Alloc(1<<40, 0); err == nil || whole.purged != purged {
		t.Errorf("%v; purged after it was cancelled", err)
	}
}

func closing(t *testing.T, open Maker) {
	p := start(t, open, pressure.Limits{})
	a, b := must(t, p, 1000), must(t, p, 5<<20)
	array, err := array.New[int32](p, 100)
	if err != nil {
		t.Fatal(err)
	}
	p.Free(a)
	p.Close()
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
