package cuda

import (
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// Every memory of a GPU keeps the promises of package pool.
func TestPoolsKeepTheirPromises(t *testing.T) {
	d := open(t)
	driver := must[*DriverPool](t)(d.NewDriverPool(-1))
	t.Cleanup(func() { ok(t, driver.Close()) })
	for _, m := range memories(d, driver) {
		t.Run(m.name, func(t *testing.T) {
			pooltest.Run(t, func(t testing.TB, limits pressure.Limits) *pool.Pool {
				return must[*pool.Pool](t)(pool.New(pool.Config{Upstream: m.up, Space: m.space, Direct: m.direct, Limits: limits,
					Warn: pooltest.Warn(t)}))
			})
		})
	}
}

// memory is one kind of memory, and how a pool is made over it.
type memory struct {
	name   string
	up     pool.Upstream
	space  pressure.Space
	direct bool
}

func memories(d *Device, driver *DriverPool) []memory {
	return []memory{
		{"device", d.Memory(), d.Space(), false},
		{"segments", d.segments(), d.Space(), false},
		{"stream-ordered", driver.Upstream(), d.Space(), true},
		{"pinned", d.Pinned(), pressure.Pinned, false},
		{"managed", d.Managed(), pressure.Managed, false},
	}
}
