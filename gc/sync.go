package gc

import (
	"runtime/trace"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A WaitPlace is a place in a program that waits: the end of a training step, the
// arrival of a request. It remembers how long waits there take. The zero value
// is ready to use. It is safe for concurrent use.
type WaitPlace struct {
	Name     string       // shown in traces
	expected atomic.Int64 // ns, smoothed
}

// Expected returns how long the next wait is expected to take; 0 before the
// first one.
func (s *WaitPlace) Expected() time.Duration { return time.Duration(s.expected.Load()) }

// due picks about one wait in four to be measured, by some bits of the clock.
// Reading the clock once more is most of what a point that does not collect costs.
func (s *WaitPlace) due(now time.Duration) bool { return s.expected.Load() == 0 || now>>6&3 == 0 }

func (s *WaitPlace) learn(d time.Duration) {
	old := s.expected.Load()
	if old == 0 {
		s.expected.Store(int64(d))
		return
	}
	s.expected.Store(old + (int64(d)-old)/4)
}

// Sync calls wait, which blocks until the device is done, or whatever else the
// program waits for, and returns its error. Before that it asks the policy. A
// cycle that starts here runs beside the wait, so that it holds the caller only
// if it takes longer than the wait. A nil place stands for all calls that have
// none. A call that does not collect costs about 0.1 us.
func (c *Collector) Sync(place *WaitPlace, wait func() error) error {
	if place == nil {
		place = &c.noPlace
	}
	begin := c.Now()
	r, top, recorded := c.askBeforeWait(policy.Point{Now: begin, At: policy.Sync, Wait: place.Expected(), WillBlock: true})

	if trace.IsEnabled() {
		wait = place.traced(wait)
	}
	err := wait()
	if recorded || place.due(begin) {
		waited := c.Now() - begin
		place.learn(waited)
		if recorded {
			c.recordWait(begin, waited, place.Name, top)
		}
	}
	if r != nil {
		c.hold(r)
	}
	return err
}

// askBeforeWait asks the policy at a sync point and obeys it. It returns the cycle
// that the caller is to wait for after its own wait, or nil.
func (c *Collector) askBeforeWait(p policy.Point) (r *collection, top *Gate, recorded bool) {
	c.mu.Lock()
	defer c.unlock()
	d, top := c.decide(p, nil, 0)
	if r = c.obey(d, top, p.Now); d.Action != policy.Block {
		r = nil
	}
	return r, top, c.recorder != nil
}

func (c *Collector) recordWait(begin, waited time.Duration, place string, top *Gate) {
	c.mu.Lock()
	defer c.unlock()
	c.record(func(to *recorder) { to.sync(begin, waited, place, top) })
}
