package cuda

import (
	"errors"
	"testing"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// What the driver's pool caches makes room for a pool of device memory, counts for
// the limit and is trimmed; the current pool of the device serves as one of our own.
func TestDriverPoolsTakePart(t *testing.T) {
	d := open(t)
	own := must[*DriverPool](t)(d.NewDriverPool(-1))
	current := must[*DriverPool](t)(d.CurrentDriverPool())
	addr := must[uintptr](t)(current.alloc(32<<20, nil))
	again := must[*DriverPool](t)(d.CurrentDriverPool())
	if mine, device := must[pool.Usage](t)(own.Usage()), must[pool.Usage](t)(again.Usage()); mine.Used != 0 || device.Used < 32<<20 {
		t.Errorf("32 MiB of the device's current pool: %d bytes used of that, %d of another", device.Used, mine.Used)
	}
	ok(t, current.free(addr, nil))
	s := must[*Stream](t)(d.NewStream())
	ok(t, s.Close())
	ok(t, current.free(must[uintptr](t)(current.alloc(1<<20, s)), s)) // the default stream follows a closed one
	for name, driver := range map[string]*DriverPool{"own": own, "current": current} {
		t.Run(name, func(t *testing.T) {
			limits := pressure.Limits{Hard: pressure.Limit{Bytes: 256 << 20}}
			a := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: driver.Upstream(), Space: d.Space(), Direct: true, Limits: limits}))
			defer a.Close()
			b := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: d.Memory(), Space: d.Space(), Limits: limits}))
			defer b.Close()
			ok(t, driver.Keep(-1)) // keep everything
			x := must[pool.Block](t)(a.Alloc(200<<20, 0))
			a.Free(x)
			ok(t, d.Synchronize())
			if s := a.Stats(); s.Upstream.Reserved-s.Upstream.Used < 200<<20 {
				t.Errorf("the driver caches %+v", s.Upstream)
			}
			y, err := b.Alloc(128<<20, 0)
			if err != nil {
				t.Fatalf("nothing is live, and 128 of 256 MiB are refused: %v", err)
			}
			if _, err := a.Alloc(200<<20, 0); !errors.Is(err, pool.ErrOutOfMemory) {
				t.Errorf("328 of 256 MiB: %v", err)
			}
			b.Free(y)
			x = must[pool.Block](t)(a.Alloc(200<<20, 0))
			a.Free(x)
			if n := a.FreeAllBlocks(); n < 200<<20 {
				t.Errorf("FreeAllBlocks gave %d bytes back", n)
			}
			ok(t, a.SetLimits(pressure.Limits{Soft: pressure.Limit{Bytes: 64 << 20}}))
			x = must[pool.Block](t)(a.Alloc(200<<20, 0))
			a.Free(x)
			ok(t, a.Synchronize())
			if u := must[pool.Usage](t)(driver.Usage()); u.Reserved > 64<<20 {
				t.Errorf("%d bytes are reserved after a sync point, the soft limit is 64 MiB", u.Reserved)
			}
		})
	}
	ok(t, errors.Join(own.Close(), current.Close()))
}
