package pool_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// mapped returns a pool over chunks that have addresses and no memory.
func mapped(t testing.TB, hard int64) (*Chunks, *pool.Pool, func(mib int64) pool.Block) {
	c := new(Chunks)
	p := maker(pool.Config{Upstream: c, Space: pressure.Device(0)})(t, pressure.Limits{Hard: pressure.Limit{Bytes: hard}})
	t.Cleanup(func() {
		p.Close()
		if err := c.Left(); err != nil {
			t.Error(err)
		}
	})
	return c, p, func(n int64) pool.Block {
		t.Helper()
		b, err := p.Alloc(n*mib, 0)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// Chunks are as large as the pool is told; else a 256th of its limit.
func TestChunkSize(t *testing.T) {
	for chunk, held := range map[int64]int64{0: 4 * mib, 2 * mib: 2 * mib, 32 * mib: 32 * mib} {
		c := new(Chunks)
		p, err := pool.New(pool.Config{Upstream: c, Space: pressure.Device(0), Chunk: chunk, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 30}}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.Alloc(2*mib, 0)
		if got := c.Counts().Held; err != nil || got != held {
			t.Errorf("chunk %d: a block of 2 MiB holds %d bytes, %v; want %d", chunk, got, err, held)
		}
		p.Free(b)
		p.Close()
	}
	for _, chunk := range []int64{-1, 1, 3 * mib} {
		if _, err := pool.New(pool.Config{Upstream: new(Chunks), Chunk: chunk}); err == nil || !strings.Contains(err.Error(), "chunks of") {
			t.Errorf("chunk %d: %v", chunk, err)
		}
	}
}

// At the limit a block takes over what it lacks from other free pieces, and no
// more: new memory is not made, and none goes back.
func TestMapperMovesOnlyWhatIsLacking(t *testing.T) {
	c, p, alloc := mapped(t, 64*mib)
	gap, keep, rest := alloc(20), alloc(4), alloc(40)
	p.Free(gap)
	p.Free(rest)
	before := c.Counts()
	p.Free(alloc(50)) // 40 lie side by side
	after := c.Counts()
	if moved := after.Unmapped - before.Unmapped; moved != 10*mib || after.Created != before.Created || after.Held != 64*mib {
		t.Errorf("%d bytes moved, %d chunks made, %d held", moved, after.Created-before.Created, after.Held)
	}
	if runs := after.Runs - before.Runs; runs != 2 {
		t.Errorf("%d runs mapped and unmapped, want one each", runs)
	}
	p.Free(keep)
}

// A hole is filled beside the free piece that needs the least for the block, so
// that the two become one.
func TestMapperFillsHoles(t *testing.T) {
	c, p, alloc := mapped(t, 64*mib)
	a, b := alloc(30), alloc(2)
	p.Free(a)
	large := alloc(40) // moves to behind b
	if large.Addr != b.Addr+2*mib {
		t.Errorf("40 MiB at %#x, not behind %#x", large.Addr, b.Addr)
	}
	p.Free(large)
	p.Free(b)
	mappings := c.Counts().Mapped
	whole := alloc(60) // the rest lies on both sides of b, and moves to one
	if more := c.Counts().Mapped - mappings; more > 11 {
		t.Errorf("%d chunks mapped for a block of 30, of which 21 are free side by side", more)
	}
	p.Free(whole)
}

// A block that no range of addresses has room for leaves none behind.
func TestMapperRefusesWhatNoRangeHolds(t *testing.T) {
	c := &Chunks{Room: 64 * mib, Bytes: 1 << 30}
	p := maker(pool.Config{Upstream: c, Space: pressure.Device(0)})(t, pressure.Limits{})
	if _, err := p.Alloc(65*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) || !strings.Contains(err.Error(), "a range of addresses has") {
		t.Error(err)
	}
	if err := c.Left(); err != nil {
		t.Error(err)
	}
	p.Close()
}

// What does not suffice stays as it is.
func TestMapperMovesNothingInVain(t *testing.T) {
	c, p, alloc := mapped(t, 64*mib)
	gap, keep := alloc(30), alloc(30)
	p.Free(gap)
	before := c.Counts()
	if _, err := p.Alloc(60*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
		t.Errorf("60 MiB beside 30 of 64: %v", err)
	}
	if after := c.Counts(); after != before {
		t.Errorf("%+v, before %+v", after, before)
	}
	p.Free(keep)
}

// An upstream that has less than the limit says lets memory move, too.
func TestMapperMovesWhenTheUpstreamIsFull(t *testing.T) {
	c := &Chunks{Bytes: 64 * mib}
	p := maker(pool.Config{Upstream: c, Space: pressure.Device(0)})(t, pressure.Limits{Hard: pressure.Limit{Bytes: 1 << 30}})
	defer p.Close()
	var held []pool.Block
	for range 3 {
		b, err := p.Alloc(20*mib, uint32(len(held)))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	p.Free(held[0])
	p.Free(held[2])
	b, err := p.Alloc(40*mib, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Free(b)
	p.Free(held[1])
}

func TestPrepare(t *testing.T) {
	c, p, alloc := mapped(t, 128*mib)
	if err := p.Prepare(100*mib, 0); err != nil {
		t.Fatal(err)
	}
	before := c.Counts()
	if before.Held != 100*mib || p.Stats().Live != 0 {
		t.Errorf("%+v", before)
	}
	for range 10 {
		defer p.Free(alloc(10))
	}
	if err := p.Prepare(20*mib, 0); err != nil {
		t.Fatal(err)
	}
	if after := c.Counts(); after.Mapped != before.Mapped+10 {
		t.Errorf("%d chunks mapped, want 10", after.Mapped-before.Mapped)
	}
	if err := p.Prepare(60*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
		t.Errorf("60 MiB beside 100 of 128: %v", err)
	}
	if err := p.Prepare(-1, 0); !errors.Is(err, pool.ErrSize) {
		t.Error(err)
	}
	p.Close()
	if err := p.Prepare(1, 0); !errors.Is(err, pool.ErrClosed) {
		t.Error(err)
	}
}

// TestMapperAgainstModel runs random schedules over chunks whose calls fail: no
// two blocks overlap, each has memory, of its own stream's range, and what the
// pool counts as reserved is what the upstream has given.
func TestMapperAgainstModel(t *testing.T) {
	schedules(t, 50, func(rt *schedule) {
		c := &Chunks{Size: 64 << 10, Room: 8 * mib, Bytes: 6 * mib}
		faulty := &Faulty{Upstream: c, Seed: rt.Uint64(), OutageLength: 3,
			Rate: map[Fault]float64{FaultRefuse: 0.05, FaultOutage: 0.02, FaultRelease: 0.1, FaultPanic: 0.02}}
		var limits pressure.Limits
		limits.Hard.Bytes = int64(rt.between(0, 4)) * mib
		p, err := pool.New(pool.Config{Upstream: faulty, Space: pressure.Device(0), Limits: limits})
		if err != nil {
			rt.Fatal(err)
		}
		var held []pool.Block
		take := func() pool.Block {
			k := rt.between(0, len(held)-1)
			b := held[k]
			held = append(held[:k], held[k+1:]...)
			return b
		}
		rt.repeat(map[string]func(*schedule) bool{
			"alloc": func(rt *schedule) bool {
				size := int64(rt.between(1, 3*mib/2)) >> rt.between(0, 10)
				b, err := p.Alloc(size, uint32(rt.between(0, 2)))
				if err == nil {
					held = append(held, b)
				} else if !errors.Is(err, pool.ErrOutOfMemory) {
					rt.Fatal(err)
				}
				return true
			},
			"free": func(rt *schedule) bool {
				if len(held) > 0 {
					p.Free(take())
				}
				return len(held) > 0
			},
			"trim": func(*schedule) bool { p.FreeAllBlocks(); return true },
			"prepare": func(rt *schedule) bool {
				if err := p.Prepare(int64(rt.between(0, 2*mib)), 1); err != nil && !errors.Is(err, pool.ErrOutOfMemory) {
					rt.Fatal(err)
				}
				return true
			},
		}, func() {
			if err := p.Check(); err != nil {
				rt.Fatal(err)
			}
			s := p.Stats()
			if n := c.Counts().Held; n != s.Reserved || limits.Hard.Bytes > 0 && n > limits.Hard.Bytes {
				rt.Fatalf("%d bytes held, %d reserved, limit %d", n, s.Reserved, limits.Hard.Bytes)
			}
			for i, a := range held {
				if !c.Has(a.Addr, a.Bytes) {
					rt.Fatalf("no memory behind %+v", a)
				}
				for _, b := range held[:i] {
					if a.Addr < b.Addr+uintptr(b.Bytes) && b.Addr < a.Addr+uintptr(a.Bytes) {
						rt.Fatalf("%+v and %+v overlap", a, b)
					}
				}
			}
		})
		faulty.Rate = nil
		p.Close()
		for _, b := range held {
			p.Free(b)
		}
		if err := c.Left(); err != nil {
			rt.Fatal(err)
		}
	})
}
