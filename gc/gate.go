package gc

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A Source is a memory that a [Collector] watches: a pool, or whatever counts.
// Its methods must be safe for concurrent use, must not block and must not
// call the collector.
type Source interface {
	Sample() pressure.Sample
	Allocated() int64 // gross bytes handed out, from the start
}

// A Gate stands before the allocations of one [Source]. A nil Gate lets
// everything pass. It is safe for concurrent use.
type Gate struct {
	wake   atomic.Int64 // ask the policy once live + request reaches this
	c      *Collector
	source Source
	space  pressure.Space // of the source
	soft   bool           // the source's limit is a goal, and its callers are held by assists alone

	// Bytes that the walk under way has given back. They count as live until the
	// policy has been told of the cycle. Otherwise the policy would take them for
	// freed by the program, as if it allocated much faster.
	yield atomic.Int64
	dying int64 // bytes that were found dead, and are not given back yet. Guarded by the lock of the releases

	wanted atomic.Int64 // least live + request that did not fit since the last cycle; 0 = none

	// Guarded by the collector's mu.
	allocated int64 // gross bytes when the last cycle had settled
	liveAfter int64
	last      pressure.Sample // the last reading of the source
	past      *stepRing[Level]
	step      *Level        // the last of them
	until     time.Duration // the end of that step
}

// NewGate makes the collector count src, which must stay usable until the
// collector is closed or the gate is. It is for pools; a program's own counter is for [Watch].
func (c *Collector) NewGate(src Source) *Gate {
	g := newGate(c, src)
	g.open()
	return g
}

// newGate makes a gate that nobody knows yet: cycles may use it as soon as it is open.
func newGate(c *Collector, src Source) *Gate {
	g := &Gate{c: c, source: src, space: src.Sample().Space, past: new(stepRing[Level])}
	g.rebase()
	return g
}

// open has the collector count the source from now on.
func (g *Gate) open() {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		g.wake.Store(math.MaxInt64)
	}
	if c.unchosen && g.space != pressure.Host {
		c.policy, c.unchosen = policy.MustParse(DefaultPolicy).New(), false
	}
	c.gates = append(c.gates, g)
}

// Close makes the collector forget the source.
func (g *Gate) Close() {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.c.gates = without(g.c.gates, g)
	g.wake.Store(math.MaxInt64)
}

// Changed says that the source has another limit: the policy is asked at the next
// allocation.
func (g *Gate) Changed() {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if !g.c.closed {
		g.wake.Store(0)
	}
}

// Allocating is called before request bytes are handed out, when live bytes are
// handed out already. The caller holds no lock. It asks the policy if that is
// due, and holds the caller for a cycle if the policy says so. Then there may be
// fewer live bytes when it returns. Where it does not ask, it costs a load and a
// comparison.
func (g *Gate) Allocating(live, request int64) {
	if g != nil && live+request >= g.wake.Load() {
		g.ask(live, request)
	}
}

func (g *Gate) ask(live, request int64) {
	c := g.c
	settled, yield := c.settled.Load(), g.yield.Load()
	now := c.Now()
	if !c.throttle.mayAsk(now, g, live) {
		return
	}
	if r := c.askAt(g, policy.Point{Now: now, At: policy.Allocation, Request: request}, live+yield, settled); r != nil {
		c.hold(r)
	}
}

// Refused is called when request bytes do not fit, before the caller waits for the cycle under way or asks
// for one. That cycle tells the policy how much would have been live: see [policy.Cycle.Wanted].
func (g *Gate) Refused(request int64) {
	if g == nil {
		return
	}
	wanted := g.source.Sample().Live + request
	for {
		old := g.wanted.Load()
		if old != 0 && old <= wanted || g.wanted.CompareAndSwap(old, wanted) {
			return
		}
	}
}

// askAt asks the policy at an allocation and obeys it. It returns the cycle that
// the caller is to wait for, or nil. Live was read when so many cycles had settled.
func (c *Collector) askAt(g *Gate, p policy.Point, live int64, settled uint64) *collection {
	c.mu.Lock()
	defer c.unlock()
	at := g
	if c.settled.Load() != settled { // while this waited: live is of before
		at = nil
	}
	d, top := c.decide(p, at, live)
	r := c.obey(d, top, p.Now)
	if d.Action != policy.Block || g.isSoft() {
		return nil
	}
	return r
}

// isSoft reports whether callers are not held for whole cycles.
func (g *Gate) isSoft() bool { return g != nil && g.soft }

// gauge returns the gauge that the gate is for, or nil.
func (g *Gate) gauge() *Gauge {
	if g == nil {
		return nil
	}
	gauge, _ := g.source.(*Gauge)
	return gauge
}

// wakeAt makes every gate ask again at the pressure that top has with wake bytes
// live; those that are one memory with it, once they have grown as much since the last cycle. Below that pressure the policy need not be
// asked, since it is only shown the space under most pressure. The caller holds mu.
func (c *Collector) wakeAt(wake int64, top *Gate) {
	if len(c.gates) == 1 {
		top.setWake(wake)
		return
	}
	limit, shared, grows := top.source.Sample().Limit, c.kept(top), wake > 0 && wake < math.MaxInt64
	for _, g := range c.gates {
		w := wake
		switch {
		case !grows:
		case g.shares(top):
			w = wake - shared + g.liveAfter // to ask always, if it is not above 0
		case g != top && limit > 0:
			w = math.MaxInt64 // without a limit it never is under most pressure
			if its := g.source.Sample().Limit; its > 0 {
				w = int64(min(float64(wake)/float64(limit)*float64(its), math.MaxInt64/2))
			}
		}
		g.setWake(w)
	}
}

// shares reports whether g and other are parts of one memory, each counted in its own way: what libraries count of the host's, and what a gauge
// reads of the rest. The policy is shown one memory, which has grown as much as the part that has grown most: their sum would hide
// garbage, since what a library frees and its allocator keeps shows in the rest.
func (g *Gate) shares(other *Gate) bool {
	part := func(g *Gate) bool { return (g.soft || g.gauge() != nil) && g.space == pressure.Host }
	return g == other || part(g) && part(other)
}

// kept is what the last cycle has left of the memory that top is a part of. The caller holds mu.
func (c *Collector) kept(top *Gate) (bytes int64) {
	for _, g := range c.gates {
		if g.shares(top) {
			bytes += g.liveAfter
		}
	}
	return bytes
}

// setWake does not store the same value again: a store costs more than a load.
func (g *Gate) setWake(wake int64) {
	if g.wake.Load() != wake {
		g.wake.Store(wake)
	}
}

// mostPressed returns the gate whose source is under most pressure (of those under the same, as without limits, and of the parts of one
// memory, the one that has grown most since the last cycle, with the request that asks counts as its growth), and its sample as policies
// see it; nil if there is none. The caller holds mu.
func (c *Collector) mostPressed(asks *Gate, request int64) (*Gate, pressure.Sample) {
	var top *Gate
	var most pressure.Sample
	var grown int64
	for _, g := range c.gates {
		yield := g.yield.Load()
		s := g.source.Sample()
		g.last = s
		s.Live += yield
		s.Reserved = max(s.Reserved, s.Live)
		growth := s.Live - g.liveAfter
		if g == asks {
			growth += request
		}
		if at, highest := s.Pressure(), most.Pressure(); top == nil || !g.shares(top) && at > highest ||
			(at == highest || g.shares(top)) && growth > grown {
			top, most, grown = g, s, growth
		}
	}
	if top == nil {
		return nil, most
	}
	others := c.kept(top) - top.liveAfter
	most.Live += others
	most.Reserved += others
	if most.Limit > 0 {
		most.Limit += others
	}
	return top, most
}

// rebase notes the state in which a cycle left the source, and returns its sample.
func (g *Gate) rebase() pressure.Sample {
	s := g.source.Sample()
	g.allocated = g.source.Allocated()
	g.liveAfter, g.last = s.Live, s
	return s
}

// fill completes a point with the state of g. The caller holds mu.
func (c *Collector) fill(p *policy.Point, g *Gate, s pressure.Sample) {
	p.Sample = s
	p.Allocated = g.source.Allocated() - g.allocated
	p.LiveAfter = c.kept(g)
	p.Freed = p.Allocated + p.LiveAfter - s.Live
	p.Cost, p.Work, p.Slowdown = c.expected.Cost, c.expected.Work, c.expected.Slowdown
	p.Running = c.current.Load() != nil
	p.Cycles = c.runtime.cycles - c.first
}
