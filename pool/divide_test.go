package pool_test

import (
	"errors"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// whole hides that the host takes memory back in parts.
type whole struct{ pool.Upstream }

// A block in the middle of a large segment does not keep the rest of it from
// other sizes, if the upstream takes parts back.
func TestDivide(t *testing.T) {
	for _, c := range []struct {
		name string
		up   pool.Upstream
		fits bool
	}{{"parts", pool.Host{}, true}, {"whole", whole{pool.Host{}}, false}} {
		t.Run(c.name, func(t *testing.T) {
			p, err := pool.New(pool.Config{Upstream: c.up, Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}}})
			if err != nil {
				t.Fatal(err)
			}
			alloc := func(bytes int64) pool.Block {
				t.Helper()
				b, err := p.Alloc(bytes, 0)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			var held []pool.Block // one segment, once the large one is free again
			first := alloc(60 << 20)
			p.Free(first)
			for _, mib := range []int64{20, 3, 20, 3, 14} {
				held = append(held, alloc(mib<<20))
			}
			for _, k := range []int{0, 2, 4} {
				p.Free(held[k])
			}
			for _, b := range []pool.Block{held[1], held[3]} {
				for _, x := range ends(p.Memory(b)) {
					*x = 7
				}
			}
			if s := p.Stats(); s.Segments != 1 || s.Live != 6<<20 {
				t.Fatalf("%d segments, %d bytes live: the test wants one and 6 MiB", s.Segments, s.Live)
			}

			large, err := p.Alloc(50<<20, 0)
			if c.fits != (err == nil) || err != nil && !errors.Is(err, pool.ErrOutOfMemory) {
				t.Fatalf("50 MiB beside 6 MiB of 64 MiB: %v", err)
			}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
			for _, b := range []pool.Block{held[1], held[3]} {
				for _, x := range ends(p.Memory(b)) {
					if *x != 7 {
						t.Error("a block has changed")
					}
				}
				p.Free(b)
			}
			if err == nil {
				p.Free(large)
			}
			p.Close()
			if s := p.Stats(); s.Reserved != 0 || s.Segments != 0 {
				t.Errorf("left behind: %d bytes in %d segments", s.Reserved, s.Segments)
			}
		})
	}
}
