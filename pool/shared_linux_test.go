package pool_test

import (
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// sharedChunks is memory that all pools of the suite share, as those of a device do.
type sharedChunks struct{ *Chunks }

func (sharedChunks) Shares() pressure.Space { return pressure.Device(30) }

// Pools that come and go on one device leave nothing of its limits and its memory
// behind.
func TestMapperShared(t *testing.T) {
	up := sharedChunks{hostChunks(t, 64<<10)}
	pooltest.Run(t, func(t testing.TB, limits pressure.Limits) *pool.Pool {
		return maker(pool.Config{Upstream: up})(t, limits)
	})
}
