package gc

import (
	"cmp"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/freed"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/internal/registry"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A collection is a cycle under way, or one that has ended.
type collection struct {
	trigger   policy.Trigger
	action    policy.Action
	reason    string // the policy's; empty if it was not asked
	gate      *Gate  // whose pressure asked for it; nil if nothing is watched
	begin     time.Duration
	allocated int64 // gross bytes of the gate when it began
	assist    governor.Assist
	passed    atomic.Int64  // callers of Own and Account that have come by
	processor time.Duration // processor time of all cycles before it
	held      time.Duration // since when a caller is held; MaxInt64 if none is. Guarded by mu
	swept     time.Duration // see goruntime.Engine
	released  registry.Cycle
	tracked   int          // objects, when it had settled
	cycle     policy.Cycle // once done is closed
	done      chan struct{}
}

func newCollection(trigger policy.Trigger, action policy.Action, reason string, gate *Gate) *collection {
	return &collection{trigger: trigger, action: action, reason: reason, gate: gate, held: math.MaxInt64, done: make(chan struct{})}
}

// Collect runs a cycle that begins after the call, and returns it once the memory of dead objects
// has been given back. It stops waiting once releases have made no progress for 100 ms, or a second
// after the mark. Calls during a cycle share the next one. The ladder of a pool calls Collect with
// [policy.TriggerRefusal]. Collect returns the zero Cycle if the collector is closed.
func (c *Collector) Collect(trigger policy.Trigger) policy.Cycle {
	c.Wait() // for a cycle that began before the call
	since := c.Now()
	c.mu.Lock()
	r := c.current.Load() // another call's
	if r == nil {
		c.refresh(since)
		r = c.start(since, trigger, policy.Block, "", c.gateOf(c.governor.MostPressed()))
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

// running reports whether a cycle of the collector is under way.
func (c *Collector) running() bool { return c.current.Load() != nil }

// obey carries out an order. It returns the cycle that the caller has to wait for, or nil. The
// caller holds mu.
func (c *Collector) obey(o governor.Order, now time.Duration) (r *collection) {
	if o.Begin {
		r = c.start(now, policy.TriggerPolicy, o.Action, c.governor.Answer.Reason, c.gateOf(c.governor.Top))
	}
	if !o.Hold {
		return nil
	}
	return cmp.Or(r, c.current.Load())
}

// refuse asks for a cycle beside the callers of g. With the request its live bytes exceed the limit.
func (g *Gate) refuse(live, request int64) {
	c, now := g.c, g.c.Now()
	if c.running() || !g.rest.Load().Over(now, live) {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	g.read()
	if o := c.governor.Refuse(now, &g.memory, request); o.Begin {
		c.start(now, policy.TriggerRefusal, o.Action, "", g)
	}
}

// start begins a cycle. No cycle may be under way. It returns nil if the collector is closed. The
// caller holds mu.
func (c *Collector) start(now time.Duration, trigger policy.Trigger, action policy.Action, reason string, gate *Gate) *collection {
	if c.life.closed {
		return nil
	}
	r := newCollection(trigger, action, reason, gate)
	r.begin, r.processor = now, c.engine.Processor()
	var m *governor.Memory
	if gate != nil {
		gate.read()
		m, r.allocated = &gate.memory, gate.memory.Allocated
	}
	if gate.gauge() != nil && c.engine.Pending().Waiting() {
		c.observed.stats.Overtaken++
	}
	r.assist = c.governor.Began(now, trigger, action, m)
	c.current.Store(r)
	c.noteLevels(now)
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
	c.log.Debug(logBegan, r.attrs)
	c.settling.Lock()
	c.promoteAll()
	r.swept = c.engine.Mark()
	c.walk(r)
	c.settling.Unlock()
	c.settle(r)
	if g := r.gate.gauge(); g != nil {
		g.Look() // the ticker may be late by a time slice
	}
}

// promoteAll makes the next cycle find young objects, too.
func (c *Collector) promoteAll() {
	for _, reg := range c.allWalkers() {
		reg.promoteAll()
	}
}

// walk finds the memory of dead objects, and begins to give it back. The cycles of the process up
// to now count as settled. The caller holds settling.
func (c *Collector) walk(r *collection) {
	c.mu.Lock()
	now := c.Now()
	c.read(now)
	for _, g := range c.gates {
		g.read()
	}
	c.noteLevels(now)
	c.runtime.seen = c.runtime.Cycles
	c.mu.Unlock()
	for _, reg := range c.allWalkers() {
		reg.walk(r)
	}
}

// settle waits until the memory has been given back, and reports the cycle.
func (c *Collector) settle(r *collection) (freed int64) {
	c.releases.Wait()
	objects, yields := c.releases.Close(&r.released)
	freed = c.finish(r, objects, yields)
	if freed > 0 && r.gate != nil && r.gate.memory.Space == pressure.Host {
		c.freedHost(1)
	}
	if r.tracked == 0 {
		c.letGo()
	}
	c.log.Debug(logEnded, func() []slog.Attr {
		return append(r.attrs(),
			slog.Int64("freed_bytes", freed), slog.Int("objects", objects), slog.Int64("live_after_bytes", r.cycle.LiveAfter),
			slog.Duration("duration", r.cycle.Duration), slog.Duration("exposed", r.cycle.Exposed), c.counters())
	})
	c.logSurvivors()
	return freed
}

// freedHost tells the trimmer of the process that a cycle has freed host memory, which the C
// allocator may keep. A trim may take so large a share of the program's processor time.
func (c *Collector) freedHost(share float64) {
	freed.By(freed.Cycle{
		Share: share, Cap: c.governor.Caps().Cycles,
		Waiting: func() bool { return c.engine.Pending().Waiting() },
		Say: func(level slog.Level, aloud bool, text string, attrs ...slog.Attr) {
			c.log.Say(observe.Line{Level: level, Text: text, Attrs: attrs, Aloud: aloud})
		},
	})
}

// finish reports the cycle to the governor, and lets held callers go. It returns the bytes that the
// cycle freed in all spaces.
func (c *Collector) finish(r *collection, objects int, yields map[*registry.Memory]int64) (freed int64) {
	tracked := 0
	for _, reg := range c.allWalkers() {
		tracked += reg.Len()
	}
	c.mu.Lock()
	defer c.unlock()
	defer close(r.done)
	c.settled.Add(1)
	c.runtime.tracked, r.tracked = tracked, tracked
	end, processor := c.Now(), c.engine.Processor()-r.processor
	c.read(end)
	for _, g := range c.gates {
		g.memory.Freed = yields[&g.returns]
		g.returns.Returning.Add(-g.memory.Freed)
		g.read()
		freed += g.memory.Freed
	}
	if r.trigger == policy.TriggerNatural {
		var m *governor.Memory
		if r.gate != nil {
			m = &r.gate.memory
		}
		r.cycle = c.governor.Natural(end, m)
	} else {
		var o governor.Order
		r.cycle, o = c.governor.Settled(end, &governor.Took{
			Duration: end - r.begin - r.released.Waited, Exposed: max(0, end-max(r.held, r.begin)), Processor: processor,
			Swept: r.swept, Tracked: tracked, Objects: objects,
		})
		c.current.Store(nil)
		c.askLater(o.Again)
	}
	c.publish()
	c.ended(r, end, processor, freed, objects)
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
	return newCollection(policy.TriggerNatural, policy.Overlap, "", c.gateOf(c.governor.MostPressed()))
}
