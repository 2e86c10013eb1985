package pool

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A Sharer is an upstream whose memory comes out of a space that other upstreams
// use, too: device memory, managed memory and the memory of the driver's pools all
// lie on one device.
//
// All pools of a process over Sharers of the same space share its memory. So do
// pools over one upstream, if that is a pointer and their Space is a device. Their
// limits bound what they hold together. Where one of them lacks memory, the others
// give their cached memory back, and every step of the refusal ladder is taken for
// all of them.
type Sharer interface {
	Shares() pressure.Space
}

// A group is the pools that share the memory of one device. A pool of other
// memory has a group of its own.
//
// mu is taken before no other lock.
type group struct {
	space   pressure.Space // of the device
	start   time.Time
	tracker pressure.Tracker // reserved bytes of all pools; it does not count live bytes
	budget  pressure.Budget
	soft    atomic.Int64 // soft limit in bytes; 0 = none
	limit   atomic.Int64 // the budget as last estimated, in bytes; 0 = unknown

	mu    sync.Mutex // held while pools, past, gates or the limits change
	pools atomic.Pointer[[]*Pool]
	past  atomic.Int64 // bytes that closed pools had handed out
	gates map[*gc.Collector]*sharedGate
}

// A sharedGate is the gate of all pools of a group that have the same collector.
type sharedGate struct {
	*gc.Gate
	pools int
}

// groups are the groups that pools of the process share, by their Sharer's space
// or by their upstream.
var groups struct {
	mu    sync.Mutex
	byKey map[any]weak.Pointer[group]
}

// joinGroup makes p, whose configuration is complete, a member of its group.
func (p *Pool) joinGroup() error {
	key := p.groupKey()
	if key == nil {
		return newGroup(p).add(p)
	}
	groups.mu.Lock()
	g := groups.byKey[key].Value()
	if g == nil {
		g = newGroup(p)
		if groups.byKey == nil {
			groups.byKey = map[any]weak.Pointer[group]{}
		}
		groups.byKey[key] = weak.Make(g)
		runtime.AddCleanup(g, forgetGroup, key)
	}
	groups.mu.Unlock()
	return g.add(p)
}

func forgetGroup(key any) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if groups.byKey[key].Value() == nil { // else another has taken its place
		delete(groups.byKey, key)
	}
}

// groupKey returns what the pools of a group have in common, nil if p is to be
// alone.
func (p *Pool) groupKey() any {
	if s, ok := p.cfg.Upstream.(Sharer); ok {
		return s.Shares()
	}
	if _, device := p.cfg.Space.Device(); device && isPointer(p.cfg.Upstream) {
		return p.cfg.Upstream
	}
	return nil
}

// place is the space whose limits hold for p.
func (p *Pool) place() pressure.Space {
	if s, ok := p.cfg.Upstream.(Sharer); ok {
		return s.Shares()
	}
	return p.cfg.Space
}

func newGroup(p *Pool) *group {
	g := &group{space: p.place(), start: time.Now(), gates: map[*gc.Collector]*sharedGate{}}
	g.budget.Info = p.upstreamInfo
	g.budget.Failed = p.warn
	g.pools.Store(new([]*Pool))
	return g
}

// add makes p a member, under the smaller of its limits and those of the group.
func (g *group) add(p *Pool) error {
	limits, err := p.inBytes(p.cfg.Limits)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p.group, p.tracker.Within = g, &g.tracker
	list := g.members()
	if len(list) > 0 {
		limits = tighter(limits, g.budget.Limits)
	}
	list = append(slices.Clone(list), p)
	g.pools.Store(&list)
	g.setLimits(limits)
	return nil
}

func (g *group) members() []*Pool { return *g.pools.Load() }

// leave takes p out, once it is closed. What it still has out is reserved memory
// of the group until it is freed.
func (g *group) leave(p *Pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(g.members()), func(q *Pool) bool { return q == p })
	g.past.Add(p.Allocated())
	g.pools.Store(&list)
}

// setLimits makes limits, which are in bytes, those of all pools. The caller holds
// mu.
func (g *group) setLimits(limits pressure.Limits) {
	g.budget.SetLimits(limits)
	g.soft.Store(limits.Soft.Bytes)
	for _, p := range g.members() {
		p.hard.Store(limits.Hard.Bytes)
	}
}

// tighter returns the smaller of each two limits in bytes; 0 is none.
func tighter(a, b pressure.Limits) pressure.Limits {
	least := func(a, b pressure.Limit) pressure.Limit {
		if a.Bytes == 0 || b.Bytes > 0 && b.Bytes < a.Bytes {
			return b
		}
		return a
	}
	return pressure.Limits{Soft: least(a.Soft, b.Soft), Hard: least(a.Hard, b.Hard)}
}

// inBytes turns shares of the total into bytes. A share of an unknown total is an
// error.
func (p *Pool) inBytes(limits pressure.Limits) (pressure.Limits, error) {
	for _, l := range []pressure.Limit{limits.Soft, limits.Hard} {
		if l.Bytes < 0 || !(l.Percent >= 0 && l.Percent <= 100) {
			return limits, fmt.Errorf("pool: limit of %d bytes or %v %%: want 0 or more, and at most 100 %%", l.Bytes, l.Percent)
		}
	}
	var info pressure.Info
	if limits.Soft.Percent != 0 || limits.Hard.Percent != 0 {
		var err error
		if info, err = p.upstreamInfo(); err != nil {
			return limits, fmt.Errorf("pool: a limit in percent needs the total of the space: %w", err)
		}
	}
	limits, err := limits.Of(info.Total)
	if err != nil {
		return limits, fmt.Errorf("pool: %w", err)
	}
	return limits, nil
}

// gate returns the gate of the group at a collector. Each call is undone by
// dropGate.
func (g *group) gate(c *gc.Collector) *gc.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.gates[c]
	if s == nil {
		s = &sharedGate{Gate: c.Watch(g)}
		g.gates[c] = s
	}
	s.pools++
	return s.Gate
}

func (g *group) dropGate(c *gc.Collector) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.gates[c]
	if s.pools--; s.pools == 0 {
		s.Close()
		delete(g.gates, c)
	}
}

// Sample and Allocated add the pools up: a group is a [gc.Source].
func (g *group) Sample() (sum pressure.Sample) {
	sum.Space = g.space
	for _, p := range g.members() {
		sum.Live += p.Sample().Live
	}
	sum.Limit = g.limit.Load()
	sum.Reserved = max(sum.Live, g.tracker.Reserved())
	return sum
}

func (g *group) Allocated() int64 {
	sum := g.past.Load()
	for _, p := range g.members() {
		sum += p.Allocated()
	}
	return sum
}

// estimate brings the budget up to date and returns it. Every ten seconds that
// asks the upstream.
func (g *group) estimate() pressure.Estimate {
	e := g.budget.At(time.Since(g.start), g.tracker.Reserved())
	g.limit.Store(e.Budget)
	return e
}

// yield has the other pools give at least bytes of cached memory back to the
// upstream, or as much as they have. It returns how much that was.
func (g *group) yield(p *Pool, bytes int64) (released int64) {
	for _, q := range g.members() {
		if q != p && released < bytes {
			q.limbo.poll(q)
			q.flush()
			released += q.giveBack(bytes - released)
		}
	}
	return released
}

// each calls do for every pool, p first, and returns the first error.
func (g *group) each(p *Pool, do func(*Pool) error) error {
	first := do(p)
	for _, q := range g.members() {
		if q == p {
			continue
		}
		if err := do(q); first == nil {
			first = err
		}
	}
	return first
}

// collectors returns the collectors of all pools, that of p first.
func (g *group) collectors(p *Pool) (list []*gc.Collector) {
	_ = g.each(p, func(q *Pool) error {
		if c := q.collect.Load(); c != nil && !slices.Contains(list, c.c) {
			list = append(list, c.c)
		}
		return nil
	})
	return list
}
