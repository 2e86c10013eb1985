package gc

import (
	"sync/atomic"

	"github.com/eagergc/eagergc/pressure"
)

// Own says that owner holds bytes of memory outside the Go heap, which release
// gives back: memory of a C library, a mapping, a handle. From then on the
// memory counts towards the collector's pressure, and some cycle after owner
// has become unreachable calls release, once. Release must not refer to owner,
// which would keep it alive for ever, must not call the collector, and runs on
// a goroutine of the collector's. If the policy says so, Own starts a cycle,
// or holds the caller for one. It does so, too, where the memory does not fit
// under the limit of Config: what Own counts is never refused, since it is there
// already, but whoever goes on is held to the speed of the collector.
//
// Owner must be as [Track] says. Own and Release together take 53 ns where few
// others are made in between, and 0.4 us otherwise (AMD EPYC, Go 1.26.8,
// results/2026-11-21-collector).
func Own[T any](c *Collector, owner *T, bytes int64, release func()) Handle {
	o := c.own()
	o.gate.Allocating(o.live.Load(), bytes)
	if o.limit > 0 && o.live.Load() > o.limit-bytes {
		o.makeRoom(bytes)
	}
	o.allocated.Add(bytes)
	o.live.Add(bytes)
	return Handle{o, Track(o.registry, owner, bytes, release)}
}

// A Handle is a claim to memory that was given to [Own]. It may be dropped.
// The zero value owns nothing.
type Handle struct {
	o    *ownership
	slot Slot
}

// Release gives the memory back now, on the caller's goroutine. It returns
// false, and does nothing, if that has happened before.
func (h Handle) Release() bool {
	if h.o == nil {
		return false
	}
	release, bytes, ok := h.o.registry.Untrack(h.slot)
	if ok {
		h.o.giveBack(release, bytes)
	}
	return ok
}

// An ownership counts the memory that was given to Own. It is a Source.
type ownership struct {
	space           pressure.Space
	limit           int64
	live, allocated atomic.Int64
	futile          atomic.Int64 // bytes that were live when a cycle last made too little room; 0 = none did
	gate            *Gate
	registry        *WeakRegistry[func()]
}

func (o *ownership) Sample() pressure.Sample {
	live := o.live.Load()
	return pressure.Sample{Space: o.space, Live: live, Reserved: live, Limit: o.limit}
}

func (o *ownership) Allocated() int64 { return o.allocated.Load() }

// makeRoom waits for the cycle under way, or else for a new one. A program that
// is above its limit with what it can reach gains nothing by that: it is
// tried again only when an eighth of the limit has come on top.
func (o *ownership) makeRoom(bytes int64) {
	fits := func() bool { return o.live.Load() <= o.limit-bytes }
	if o.gate.c.Wait() && fits() {
		return
	}
	if last := o.futile.Load(); last > 0 && o.live.Load()-last < o.limit/8 {
		return
	}
	o.gate.c.Collect(TriggerRefusal)
	if fits() {
		o.futile.Store(0)
	} else {
		o.futile.Store(o.live.Load())
	}
}

func (o *ownership) giveBack(release func(), bytes int64) {
	o.live.Add(-bytes)
	release()
}

func newOwnership(c *Collector, cfg Config) *ownership {
	o := &ownership{space: cfg.Space, limit: cfg.Limit}
	o.gate = c.Watch(o)
	o.registry = NewWeakRegistry(o.gate, o.giveBack)
	return o
}
