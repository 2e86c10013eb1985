package pool_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// hostChunks returns memory that can be mapped, and holds the test to giving it all back.
func hostChunks(t testing.TB, size int64) *Chunks {
	c, done, err := HostChunks(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Left(); err != nil {
			t.Error(err)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A pool over memory that can be mapped keeps every promise, and what blocks hold
// stays as it is when the memory beside them moves.
func TestMapper(t *testing.T) {
	pooltest.Run(t, func(t testing.TB, limits pressure.Limits) *pool.Pool {
		return maker(pool.Config{Upstream: hostChunks(t, 64<<10)})(t, limits)
	})
}

// With poison, memory that has moved is poisoned where it is now: nothing there passes for a stray write.
func TestMapperWithPoison(t *testing.T) {
	up := hostChunks(t, 64<<10)
	p := maker(pool.Config{Upstream: up, Poison: true})(t, pressure.Limits{Hard: pressure.Limit{Bytes: 2 * mib}})
	defer p.Close()
	r := rand.New(rand.NewPCG(1, 2))
	var held []pool.Block
	for range 400 {
		if b, err := p.Alloc(int64(r.IntN(700<<10)), uint32(r.IntN(2))); err == nil {
			for _, x := range ends(p.Memory(b)) {
				*x = 1
			}
			held = append(held, b)
		} else if !errors.Is(err, pool.ErrOutOfMemory) {
			t.Fatal(err)
		}
		for len(held) > r.IntN(8) {
			i := r.IntN(len(held))
			p.Free(held[i])
			held = slices.Delete(held, i, i+1)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range held {
		p.Free(b)
	}
	if n := up.Counts(); n.Unmapped < 16*mib {
		t.Errorf("memory has hardly moved: %+v", n)
	}
}
