package gc

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/internal/registry"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A Source is a memory that a [Collector] watches, such as a pool. Its methods must be safe for
// concurrent use, must not block and must not call the collector.
type Source interface {
	Sample() pressure.Sample
	Allocated() int64 // gross bytes handed out since the start
}

// A Gate stands before the allocations of one [Source]. A nil Gate lets everything pass. It is safe
// for concurrent use.
type Gate struct {
	wake    atomic.Int64 // ask the policy once live + request reaches this
	rest    atomic.Pointer[governor.Rest]
	c       *Collector
	source  Source
	gauge   *Gauge // the source, if it is one
	returns registry.Memory

	// Guarded by the collector's mu.
	memory governor.Memory
	past   observe.Series[Level]
}

// NewGate makes the collector watch src, which must stay usable until the collector or the gate is
// closed. It is for pools. Use [Watch] for a program's own counter.
func (c *Collector) NewGate(src Source) *Gate {
	g := newGate(c, src)
	g.open()
	return g
}

// newGate makes a gate that the collector does not know before open.
func newGate(c *Collector, src Source) *Gate {
	g := &Gate{c: c, source: src}
	g.memory.Space = src.Sample().Space
	g.rest.Store(new(governor.Rest))
	return g
}

// open makes the collector watch the source.
func (g *Gate) open() {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.unchosen && g.memory.Space != pressure.Host {
		c.life.unchosen = false
		c.governor.SetPolicy(&contained{policy.MustParse(DefaultPolicy).New(), c})
	}
	g.read(c.Now())
	c.gates = append(c.gates, g)
	c.governor.Add(&g.memory)
	c.publish()
}

// Close makes the collector forget the source.
func (g *Gate) Close() {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gates = without(c.gates, g)
	c.governor.Remove(&g.memory)
	g.wake.Store(math.MaxInt64)
}

// Changed tells the collector that the source has another limit. The policy is asked at the next
// allocation.
func (g *Gate) Changed() {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.c.governor.Changed()
	g.c.publish()
}

// Allocating is called before request bytes are handed out in addition to the live bytes. The caller
// holds no lock. Allocating asks the policy if that is due, and holds the caller for a cycle if the
// policy wants that. Otherwise it costs a load and a comparison.
func (g *Gate) Allocating(live, request int64) {
	if g != nil && live+request >= g.wake.Load() {
		if r := g.ask(live, request); r != nil {
			g.c.hold(r, g.c.Now())
		}
	}
}

// ask asks the policy, unless the memory rests. It returns the cycle that the caller has to wait
// for, or nil.
func (g *Gate) ask(live, request int64) *collection {
	c := g.c
	settled, returning := c.settled.Load(), g.returns.Returning.Load()
	now := c.Now()
	if !g.rest.Load().Over(now, live) {
		return nil
	}
	return c.decide(now, func() governor.Order {
		if c.settled.Load() == settled { // otherwise live is older than the last cycle
			g.memory.Live, g.memory.Returning = live, returning
		}
		return c.governor.Allocate(now, &g.memory, request)
	})
}

// decide takes new readings, calls a step of the governor, and carries out its order. It returns the
// cycle that the caller has to wait for, or nil.
func (c *Collector) decide(now time.Duration, step func() governor.Order) *collection {
	c.mu.Lock()
	defer c.unlock()
	c.refresh(now)
	o := step()
	c.decided()
	return c.obey(o, now)
}

// Refused is called when request bytes do not fit, before the caller waits for a cycle or asks for
// one. That cycle tells the policy how many bytes would have been live: see [policy.Cycle.Wanted].
func (g *Gate) Refused(request int64) {
	if g == nil {
		return
	}
	c, now := g.c, g.c.Now()
	c.mu.Lock()
	defer c.unlock()
	g.read(now)
	c.obey(c.governor.Refuse(now, &g.memory, request), now)
}

// read takes a reading of the source, and puts it on the timeline. The caller holds mu.
func (g *Gate) read(now time.Duration) pressure.Sample {
	s := g.source.Sample()
	g.memory.Reading = governor.Reading{
		Live: s.Live, Reserved: s.Reserved, Limit: s.Limit, Allocated: g.source.Allocated(), Returning: g.returns.Returning.Load(),
	}
	l, fresh := g.past.At(now)
	if fresh {
		*l = Level{Start: now.Truncate(observe.Step), First: s.Live, Least: s.Live, Most: s.Live}
	}
	l.Last, l.Least, l.Most = s.Live, min(l.Least, s.Live), max(l.Most, s.Live)
	l.Reserved, l.Limit = max(l.Reserved, s.Reserved), s.Limit
	return s
}

// refresh takes new readings for a decision. The caller holds mu.
func (c *Collector) refresh(now time.Duration) {
	if now-c.runtime.readAt >= readEvery {
		c.noticeCycles(now)
	}
	for _, g := range c.gates {
		g.read(now)
	}
}

// publish copies wake levels and rests from the governor to the gates. It does not store a value
// again, because a store costs more than a load. The caller holds mu.
func (c *Collector) publish() {
	for _, g := range c.gates {
		if w := g.memory.Wake; g.wake.Load() != w {
			g.wake.Store(w)
		}
		if r := &g.memory.Rest; *g.rest.Load() != *r {
			rest := *r
			g.rest.Store(&rest)
		}
	}
}

// gateOf returns the gate of a memory, or nil. The caller holds mu.
func (c *Collector) gateOf(m *governor.Memory) *Gate {
	for _, g := range c.gates {
		if &g.memory == m {
			return g
		}
	}
	return nil
}
