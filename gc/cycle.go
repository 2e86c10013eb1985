package gc

import (
	"cmp"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/freed"
	"github.com/eagergc/eagergc/gc/internal/registry"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A collection is a cycle under way, or one that has ended.
type collection struct {
	governor.Run
	gate     *Gate         // of the memory that the cycle is for; nil if nothing is watched
	passed   atomic.Int64  // callers of Own and Account that have come by
	added    int64         // gross bytes of the gate while it ran; at first those before, negated
	held     time.Duration // since when a caller is held; MaxInt64 if none is. Guarded by mu
	released registry.Cycle
	cycle    policy.Cycle // once done is closed
	done     chan struct{}
}

// newCollection returns a collection without a Run. The caller holds mu.
func (c *Collector) newCollection(why governor.Cause) *collection {
	return &collection{Run: governor.Run{Cause: why}, gate: c.gateOf(why.Memory), held: math.MaxInt64, done: make(chan struct{})}
}

// Collect runs a cycle that begins after the call, and returns it once the memory of dead objects
// has been given back. It stops waiting once releases have made no progress for 100 ms, or a second
// after the mark. Calls during a cycle share the next one. A closed collector returns the zero Cycle.
func (c *Collector) Collect(trigger policy.Trigger) policy.Cycle {
	c.Wait() // for a cycle that began before the call
	since := c.Now()
	c.mu.Lock()
	r := c.current.Load() // another call's
	if r == nil {
		c.refresh(since)
		r = c.start(since, governor.Cause{Trigger: trigger, Action: policy.Block, Memory: c.governor.MostPressed(nil, 0)})
	}
	c.unlock()
	if r == nil {
		return policy.Cycle{}
	}
	c.hold(r, since)
	return r.cycle
}

// Wait waits until the cycle under way has settled, and reports whether there was one. An
// allocation that does not fit calls it before it asks for a cycle of its own.
func (c *Collector) Wait() bool {
	r := c.current.Load()
	if r != nil {
		c.hold(r, c.Now())
	}
	return r != nil
}

func (c *Collector) running() bool { return c.current.Load() != nil }

// obey carries out an order. It returns the cycle that the caller has to wait for, or nil. The
// caller holds mu.
func (c *Collector) obey(o governor.Order, now time.Duration) (r *collection) {
	if o.Begin {
		r = c.start(now, o.Cause)
	}
	if !o.Hold {
		return nil
	}
	return cmp.Or(r, c.current.Load())
}

// start begins a cycle. No cycle may be under way. It returns nil if the collector is closed. The
// caller holds mu.
func (c *Collector) start(now time.Duration, why governor.Cause) *collection {
	if c.life.closed {
		return nil
	}
	r := c.newCollection(why)
	if r.gate != nil {
		r.gate.read(now)
		r.added = -r.Memory.Allocated
	}
	if r.gate != nil && r.gate.gauge != nil && c.engine.Pending().Waiting() {
		c.observed.stats.Overtaken++
	}
	r.Run = c.governor.Began(now, why)
	r.Processor = -c.engine.Processor() // finish adds the sum at the end
	c.current.Store(r)
	c.spawn(func() { c.drive(r) })
	return r
}

// hold holds the caller until r has settled. The time from since counts as exposed pause.
func (c *Collector) hold(r *collection, since time.Duration) {
	select {
	case <-r.done:
		return
	default:
	}
	c.mu.Lock()
	r.held = min(r.held, since)
	c.mu.Unlock()
	<-r.done
	c.paused(r, since)
}

// drive is the goroutine of a cycle.
func (c *Collector) drive(r *collection) {
	c.settling.Lock()
	c.promoteAll()
	r.Swept = c.engine.Mark()
	c.walk(r)
	c.settling.Unlock()
	c.settle(r)
	if r.gate != nil && r.gate.gauge != nil {
		r.gate.gauge.Look() // the ticker may be late by a time slice
	}
}

func (c *Collector) promoteAll() {
	for _, w := range c.allWalkers() {
		w.promoteAll()
	}
}

// walk finds the memory of dead objects, and begins to give it back. The cycles of the process up
// to now count as settled. The caller holds settling.
func (c *Collector) walk(r *collection) {
	c.mu.Lock()
	now := c.Now()
	c.read(now)
	for _, g := range c.gates {
		g.read(now)
	}
	c.runtime.seen = c.runtime.Cycles
	c.mu.Unlock()
	for _, w := range c.allWalkers() {
		w.walk(r)
	}
}

// settle waits until the memory has been given back, and reports the cycle.
func (c *Collector) settle(r *collection) (freed int64) {
	c.releases.Wait()
	freed = c.finish(r)
	if freed > 0 && r.gate != nil && r.gate.memory.Space == pressure.Host {
		c.freedHost(r.gate.gauge)
	}
	if r.Tracked == 0 {
		c.letGo()
	}
	c.log.Debug(logEnded, func() []slog.Attr {
		return append(r.attrs(),
			slog.Int64("freed_bytes", freed), slog.Int("objects", r.Objects), slog.Int64("live_after_bytes", r.cycle.LiveAfter),
			slog.Duration("duration", r.cycle.Duration), slog.Duration("exposed", r.cycle.Exposed))
	})
	c.logSurvivors()
	return freed
}

// freedHost tells the trimmer of the process that a cycle has freed host memory, which the C
// allocator may keep. If only a gauge has seen that, the worth of its cycles bounds the trims.
func (c *Collector) freedHost(g *Gauge) {
	share := 1.0
	if g != nil {
		share = g.seen.Load().worth.Trims()
	}
	freed.By(freed.Cycle{
		Share: share, Cap: c.governor.Caps().Cycles,
		Waiting: func() bool { return c.engine.Pending().Waiting() },
		Say:     c.log.Say,
	})
}

// finish reports the cycle to the governor, and lets held callers go. It returns the bytes that the
// cycle freed in all spaces.
func (c *Collector) finish(r *collection) (freed int64) {
	objects, yields := c.releases.Close(&r.released)
	r.Objects, r.Tracked = objects, c.tracked()
	c.mu.Lock()
	defer c.unlock()
	defer close(r.done)
	c.settled.Add(1)
	c.runtime.tracked = r.Tracked
	now := c.Now()
	c.read(now)
	for _, g := range c.gates {
		g.memory.Freed = yields[&g.returns]
		g.returns.Returning.Add(-g.memory.Freed)
		g.read(now)
		freed += g.memory.Freed
	}
	natural := r.Trigger == policy.TriggerNatural
	if !natural {
		r.Duration, r.Exposed = now-r.Start-r.released.Waited, max(0, now-max(r.held, r.Start))
		r.Processor += c.engine.Processor()
	}
	r.cycle = c.governor.Settled(now, &r.Run)
	if !natural {
		c.current.Store(nil)
	}
	c.publish()
	c.ended(r, now, freed)
	return freed
}

// Reap gives back the memory that cycles of the runtime have found dead since the last cycle, and
// returns its bytes. It does not collect. While a cycle is under way it does nothing.
func (c *Collector) Reap() int64 {
	if c.running() {
		return 0 // Reap would have to wait for it
	}
	c.settling.Lock()
	r := c.natural()
	if r != nil {
		c.walk(r)
		c.promoteAll() // the next such cycle finds them
	}
	c.settling.Unlock()
	if r == nil {
		return 0
	}
	return c.settle(r)
}

// natural returns a cycle that the runtime has run by itself, or nil.
func (c *Collector) natural() *collection {
	c.mu.Lock()
	defer c.unlock()
	now := c.Now()
	c.read(now)
	if c.running() || c.runtime.Cycles == c.runtime.seen {
		return nil
	}
	c.refresh(now)
	return c.newCollection(governor.Cause{Trigger: policy.TriggerNatural, Action: policy.Overlap, Memory: c.governor.MostPressed(nil, 0)})
}
