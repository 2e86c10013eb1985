package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"
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

// One op is an allocation and the free of it, the block being cached.
func BenchmarkAllocFree(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("via=pool/bytes=%d", size), func(b *testing.B) {
			p := newPool(b, Config{})
			b.ReportAllocs()
			for b.Loop() {
				x, _ := p.Alloc(size, 0)
				p.Free(x)
			}
		})
	}
}

// Each goroutine does what BenchmarkAllocFree does; compare ns/op at -cpu 1,2:
// with perfect scaling two cores show half.
func BenchmarkAllocFreeParallel(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			p := newPool(b, Config{})
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					x, _ := p.Alloc(size, 0)
					p.Free(x)
				}
			})
		})
	}
}

// Beside n live blocks: order=stack allocates and frees the same block,
// order=random replaces one of the n, wherever it lies.
func BenchmarkLiveBlocks(b *testing.B) {
	for _, order := range []string{"stack", "random"} {
		for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("order=%s/live=%d", order, n), func(b *testing.B) {
				p := newPool(b, Config{})
				held := make([]Block, n)
				for i := range held {
					held[i], _ = p.Alloc(512, 0)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				for b.Loop() {
					i := 0
					if order == "random" {
						i = rng.IntN(n)
					}
					p.Free(held[i])
					held[i], _ = p.Alloc(512, 0)
				}
				for _, x := range held {
					p.Free(x)
				}
			})
		}
	}
}

// One op is a new array and its Free.
func BenchmarkArray(b *testing.B) {
	p := newPool(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		a, _ := NewArray[float32](p, 1000, 0)
		a.Free()
	}
}
