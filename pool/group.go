package pool

import (
	"cmp"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
)

// A Sharer is an upstream whose memory comes out of a space that other upstreams use, too. Device
// memory, managed memory and the memory of the driver's pools all lie on one device.
//
// All pools of a process over Sharers of the same space share its memory. So do pools over one
// upstream, if that is a pointer and their Space is a device. Their limits bound them together. If
// one of them lacks memory, the others give their cached memory back. Every step of the refusal
// ladder is taken for all of them.
type Sharer interface {
	Shares() pressure.Space
}

// A group is the pools that share the memory of one device. A pool of other memory has a group of
// its own.
//
// mu is taken before no other lock.
type group struct {
	space      pressure.Space // of the device
	start      time.Time
	tracker    tracker      // reserved bytes of all pools; it does not count live bytes
	soft, hard atomic.Int64 // limits in bytes; 0 = none
	limit      atomic.Int64 // the budget as last estimated, in bytes; 0 = unknown

	asking sync.Mutex   // held while the space is asked
	asked  atomic.Int64 // when it was asked last, in ns since start; below 0: limits or pools have changed since
	free   atomic.Int64 // free + reserved bytes at its last answer; 0 = none yet
	silent bool         // it did not answer the last time; guarded by asking

	mu     sync.Mutex       // held while pools, gates or the limits change
	set    *pressure.Limits // by SetLimits since there were pools, in bytes; nil: none
	pools  atomic.Pointer[[]*Pool]
	oldest atomic.Pointer[Pool] // of the pools that are open, or were last
	past   atomic.Int64         // bytes that closed pools had handed out
	gates  map[*gc.Collector]*sharedGate

	// moving is the number of goroutines that bring segments from an upstream to a core, or back.
	// Segments on their way count as reserved, but no search finds them.
	moving atomic.Int64
}

// A sharedGate is the gate of all pools of a group that have the same collector.
type sharedGate struct {
	*gc.Gate
	pools int
}

// groups are the groups that pools of the process share, by their Sharer's space or by their
// upstream.
var groups struct {
	mu    sync.Mutex
	byKey map[any]weak.Pointer[group]
}

// joinGroup makes p, whose configuration is complete, a member of its group.
func (p *Pool) joinGroup() {
	key := p.groupKey()
	if key == nil {
		newGroup(p).add(p)
		return
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
	g.add(p)
}

func forgetGroup(key any) {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if groups.byKey[key].Value() == nil { // else another has taken its place
		delete(groups.byKey, key)
	}
}

// groupKey returns the key that all pools of a group share, or nil if p is to be alone.
func (p *Pool) groupKey() any {
	if s, ok := p.cfg.Upstream.(Sharer); ok {
		return s.Shares()
	}
	if _, device := p.cfg.Space.Device(); device && reflect.TypeOf(p.cfg.Upstream).Kind() == reflect.Pointer {
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
	g.pools.Store(new([]*Pool))
	return g
}

func (g *group) add(p *Pool) {
	p.group, p.tracker.Within = g, &g.tracker
	g.change(func(list []*Pool) []*Pool { return append(list, p) })
}

func (g *group) members() []*Pool { return *g.pools.Load() }

// leave takes p out, once it is closed. Its live blocks stay reserved memory of the group until
// they are freed.
func (g *group) leave(p *Pool) {
	g.past.Add(p.Allocated())
	g.change(func(list []*Pool) []*Pool { return slices.DeleteFunc(list, func(q *Pool) bool { return q == p }) })
}

// gate returns the gate of the group at a collector. Each call is undone by dropGate.
func (g *group) gate(c *gc.Collector) *gc.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.gates[c]
	if s == nil {
		s = &sharedGate{Gate: c.NewGate(g)}
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

// budgetInterval is how long an estimate of a budget holds, as in CUDA.jl.
const budgetInterval = 10 * time.Second

// estimate returns the bytes that the device may hold, as CUDA.jl 5.4 estimates them: the hard limit,
// or else the soft limit, or else the free, live and cached bytes together. These are estimated anew
// every ten seconds; meanwhile, and while another caller asks, the last estimate holds. If the device
// does not answer, the last estimate stays, and Warn gets the first failure in a row. (In CUDA.jl one
// failure switches eager collection off for good, CUDA.jl#2795.)
func (g *group) estimate() int64 {
	now := time.Since(g.start)
	if asked := g.asked.Load(); (asked < 0 || now-time.Duration(asked) >= budgetInterval) && g.asking.TryLock() {
		g.asked.Store(int64(now))
		p := g.oldest.Load() // all lie on one device
		info, err := p.upstreamInfo()
		if err == nil {
			g.free.Store(max(info.Free, 0) + g.tracker.Reserved())
		}
		first := err != nil && !g.silent
		g.silent = err != nil
		g.asking.Unlock()
		if first {
			p.warn(err)
		}
	}
	budget := cmp.Or(g.hard.Load(), g.soft.Load(), g.free.Load())
	g.limit.Store(budget)
	return budget
}

// yield has the other pools give at least bytes of cached memory back to the upstream, or as much
// as they have. It returns how much that was.
func (g *group) yield(p *Pool, bytes int64) (released int64) {
	for _, q := range g.members() {
		if q != p && released < bytes {
			q.flight.poll(q)
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
