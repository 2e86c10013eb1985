package cuda

import (
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// newPool returns a pool over u that is checked to be empty at the end.
func newPool(t testing.TB, u pool.Upstream, space pressure.Space, direct bool) *pool.Pool {
	t.Helper()
	c := must[*gc.Collector](t)(gc.New(gc.Config{}))
	p := must[*pool.Pool](t)(pool.New(pool.Config{Upstream: u, Space: space, Collector: c, Direct: direct,
		Warn: func(err error) { t.Error(err) }}))
	t.Cleanup(func() {
		c.Collect(policy.TriggerExplicit)
		if live := p.Sample().Live; live != 0 {
			t.Errorf("%d bytes are still live", live)
		}
		p.Close()
		c.Close()
	})
	return p
}

func pattern(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i) * 2654435761
	}
	return s
}

// Memory that a pool has is handed out and taken back without a call of the driver, so
// without waiting for the device, with a hard limit, too.
func TestThePoolAsksTheDriverNothing(t *testing.T) {
	d := open(t)
	s := must[*Stream](t)(d.NewStream())
	w := must[*Work](t)(NewWork(d))
	p := newPool(t, d.Memory(), d.Space(), false)
	ok(t, p.SetLimits(pressure.Limits{Hard: pressure.Limit{Bytes: 256 << 20}}))
	const n = 1 << 20
	p.Free(must[pool.Block](t)(p.Alloc(n, s.ID())))
	ok(t, w.Spin(s, 50*time.Millisecond))
	before := byName(Calls())
	for range 1000 {
		p.Free(must[pool.Block](t)(p.Alloc(n, s.ID())))
	}
	for name, c := range byName(Calls()) {
		if more := c.Calls - before[name].Calls; more != 0 {
			t.Errorf("1000 allocations made %d calls of %s", more, name)
		}
	}
	ok(t, errors.Join(s.Synchronize(), w.Close()))
}

// Work of two streams overlaps.
func TestStreamsOverlap(t *testing.T) {
	d := open(t)
	w := must[*Work](t)(NewWork(d))
	s, other := must[*Stream](t)(d.NewStream()), must[*Stream](t)(d.NewStream())
	overlap := false
	for try := 0; try < 5 && !overlap; try++ { // a busy machine may have the first one end before
		ok(t, w.Spin(s, 100*time.Millisecond))
		ok(t, w.Spin(other, 0))
		ok(t, other.Synchronize())
		idle := must[bool](t)(s.idle())
		overlap = !idle
		ok(t, s.Synchronize())
	}
	if !overlap {
		t.Error("work of one stream waited for that of another, five times")
	}
	ok(t, w.Close())
}
