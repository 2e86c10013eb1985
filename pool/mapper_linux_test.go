package pool_test

import (
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
	for name, cfg := range map[string]pool.Config{"plain": {}, "poison": {Poison: true}} {
		t.Run(name, func(t *testing.T) {
			if cfg.Poison && testing.Short() {
				t.Skip("slow")
			}
			pooltest.Run(t, func(t testing.TB, limits pressure.Limits) *pool.Pool {
				c := cfg
				c.Upstream = hostChunks(t, 64<<10)
				return maker(c)(t, limits)
			})
		})
	}
}
