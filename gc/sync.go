package gc

import (
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/observe"
)

// A WaitPlace is a place in a program that waits, such as the end of a training step or the arrival
// of a request. It learns how long waits there take. The zero value is ready to use. It is safe for
// concurrent use.
type WaitPlace struct {
	Name     string       // for recordings
	expected atomic.Int64 // ns, smoothed
}

// Expected returns the expected length of the next wait; 0 before the first one.
func (p *WaitPlace) Expected() time.Duration { return time.Duration(p.expected.Load()) }

// due chooses about one wait in four to be measured, by some bits of the clock. A second reading of
// the clock is most of the cost of a point that does not collect.
func (p *WaitPlace) due(now time.Duration) bool { return p.expected.Load() == 0 || now>>6&3 == 0 }

// Sync asks the policy, calls wait, and returns its error. Wait blocks until the device is done, or
// for anything else that the program waits for. A cycle that starts here runs beside the wait, so
// it holds the caller only if it takes longer. Calls with a nil place share one place. A call that
// does not collect costs about 0.1 us.
func (c *Collector) Sync(place *WaitPlace, wait func() error) error {
	if place == nil {
		place = &c.noPlace
	}
	begin := c.Now()
	r, top, recorded := c.askBeforeWait(begin, place.Expected())
	err := wait()
	if recorded || place.due(begin) {
		waited := c.Now() - begin
		place.expected.Store(int64(governor.NextWait(place.Expected(), waited)))
		if recorded {
			c.recordNow(func(to *observe.Recorder) { to.Sync(begin, waited, place.Name, spaceOf(top)) })
		}
	}
	if r != nil {
		c.hold(r, c.Now())
	}
	return err
}

// askBeforeWait asks the policy at a sync point and obeys it. It returns the cycle that the caller
// has to wait for after its own wait, or nil.
func (c *Collector) askBeforeWait(now, wait time.Duration) (r *collection, top *Gate, recorded bool) {
	c.mu.Lock()
	defer c.unlock()
	c.refresh(now)
	o := c.governor.Sync(now, wait)
	c.decided(now)
	return c.obey(o, now), c.gateOf(c.governor.Top), c.observed.recorder != nil
}
