package gc

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
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

// Sync asks the policy, calls wait, and returns its error. Wait blocks until the device is done, for
// example. A cycle that starts here runs beside the wait, so it holds the caller only if it takes
// longer. Calls with a nil place share one. A call that does not collect costs about 0.1 us.
func (c *Collector) Sync(place *WaitPlace, wait func() error) error {
	if place == nil {
		place = &c.noPlace
	}
	begin := c.Now()
	var space pressure.Space
	r := c.decide(begin, func() governor.Order {
		o := c.governor.Sync(begin, place.Expected())
		space = c.governor.Asked.Sample.Space
		return o
	})
	err := wait()
	// About one wait in four is measured, because a second reading of the clock is most of the cost.
	if c.recording.Load() || place.Expected() == 0 || begin>>6&3 == 0 {
		waited := c.Now() - begin
		place.expected.Store(int64(governor.NextWait(place.Expected(), waited)))
		c.recordNow(func(to *observe.Recorder) { to.Span(trace.Sync, begin, waited, place.Name, space) })
	}
	if r != nil {
		c.hold(r, c.Now())
	}
	return err
}

// assist holds a caller that adds bytes beside the cycle r for its share of the rest of r.
func (o *ownership) assist(r *collection, bytes int64) {
	if r.gate != o.gate || o.limit.Load() <= 0 {
		return
	}
	owed := time.Duration(o.owed.Add(int64(r.Share(bytes))))
	if owed < governor.LeastAssist {
		return
	}
	o.owed.Add(-int64(owed))
	c := o.gate.c
	c.holdBriefly(r, true, func(now time.Duration) time.Duration {
		o.gate.read(now)
		return c.governor.Assist(now, &r.Run, owed)
	})
}

// giveWay lets the cycle r have the caller's processor.
func (c *Collector) giveWay(r *collection) {
	n := r.passed.Add(1)
	if n == 1 && !c.engine.Spare() {
		c.holdBriefly(r, false, c.governor.GiveWay)
	} else if 1 < n && n <= int64(governor.Yielders(goruntime.Processors())) {
		runtime.Gosched()
	}
}

// holdBriefly holds a caller beside r for the time that want returns. Want is called with mu held.
// A caller that gives way is not exposed to r: without it, r would have taken another goroutine's
// time.
func (c *Collector) holdBriefly(r *collection, exposed bool, want func(now time.Duration) time.Duration) {
	now := c.Now()
	c.mu.Lock()
	length := want(now)
	if exposed && length > 0 {
		r.held = min(r.held, now)
	}
	c.mu.Unlock()
	if length <= 0 {
		return
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-r.done:
		c.mu.Lock()
		c.governor.LetGo(c.Now())
		c.mu.Unlock()
	case <-timer.C:
	}
	c.paused(r, now)
}

// checkQuiet is called by the idle timer.
func (c *Collector) checkQuiet() {
	now := c.Now()
	c.decide(now, func() governor.Order {
		o, more := c.governor.Quiet(now)
		if more {
			c.life.idle.Reset(c.life.idleEvery)
		} else {
			c.awake.Store(false) // the next Track calls stayAwake
		}
		return o
	})
}
