package gc

import (
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

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
	live      int64         // bytes of the gate when it began
	allocated int64         // gross bytes of the gate when it began
	expected  time.Duration // how long it was expected to take
	passed    atomic.Int64  // callers of Own and Account that have come by
	processor time.Duration // that cycles had taken before it
	held      time.Duration // since when a caller is held; noOne if none is. Guarded by mu
	marking   marking
	task      task         // in a trace of the program
	cycle     policy.Cycle // once done is closed
	done      chan struct{}

	tracked int // objects, when it had settled

	// Guarded by the lock of the releases.
	releases *releases
	waited   time.Duration // for finalizers and cleanups, which is no cost of the cycle
	batches  []*batch      // found dead
	objects  int           // given back so far
	over     bool          // releases that end from now on are too late for its yield
}

const noOne = time.Duration(1<<63 - 1)

func (c *Collector) newCollection(trigger policy.Trigger, d policy.Decision, gate *Gate) *collection {
	return &collection{
		releases: c.releases,
		trigger:  trigger, action: d.Action, reason: d.Reason, gate: gate, held: noOne,
		task: newTask(trigger, d.Reason), done: make(chan struct{}),
	}
}

// Collect runs a cycle that begins after the call, and returns it once
// the memory of the dead has been given back. It does not wait for a release that
// takes longer than 100 ms while no other ends, nor for more than a second after
// the mark. Calls that come in meanwhile share the next cycle. The ladder of a
// pool calls it with [policy.TriggerRefusal]. It returns the zero Cycle if the collector
// is closed.
func (c *Collector) Collect(trigger policy.Trigger) policy.Cycle {
	if trigger == policy.TriggerRefusal {
		c.debug(logRefused, c.topAttrs)
	}
	since := c.Now()
	if r := c.current.Load(); r != nil { // began before the call
		c.holdFrom(r, since)
		since = c.Now()
	}
	r := c.beginNow(trigger, since)
	if r == nil {
		return policy.Cycle{}
	}
	c.holdFrom(r, since)
	return r.cycle
}

// beginNow starts a cycle for whoever asks, unless one is under way. It returns
// that, or nil if the collector is closed.
func (c *Collector) beginNow(trigger policy.Trigger, now time.Duration) *collection {
	c.mu.Lock()
	defer c.unlock()
	if r := c.current.Load(); r != nil {
		return r
	}
	top, _ := c.mostPressed(nil, 0)
	return c.begin(trigger, policy.Decision{Action: policy.Block}, top, now)
}

// Wait waits until the cycle under way has settled, and reports whether there
// was one. An allocation that does not fit waits so before it asks for a
// cycle of its own.
func (c *Collector) Wait() bool {
	r := c.current.Load()
	if r != nil {
		c.hold(r)
	}
	return r != nil
}

// running reports whether a cycle that the collector has asked for is under way.
func (c *Collector) running() bool { return c.current.Load() != nil }

// obey starts what d asks for; it returns the cycle that the caller is to
// wait for if d says Block. The caller holds mu.
func (c *Collector) obey(d policy.Decision, top *Gate, now time.Duration) *collection {
	if d.Action == policy.Skip {
		return nil
	}
	if r := c.current.Load(); r != nil {
		return r // one at a time
	}
	return c.begin(policy.TriggerPolicy, d, top, now)
}

// beginFor starts a cycle beside the callers of g, which has reached its limit with
// so many live bytes, unless one is under way or it has to rest.
func (c *Collector) beginFor(g *Gate, live int64) {
	now := c.Now()
	if c.current.Load() != nil || !c.throttle.mayAsk(now, g, live) {
		return
	}
	c.debug(logRefused, c.topAttrs)
	c.mu.Lock()
	defer c.unlock()
	if c.current.Load() == nil && c.throttle.mayBegin(now) {
		c.begin(policy.TriggerRefusal, policy.Decision{Action: policy.Overlap}, g, now)
	}
}

// begin starts a cycle. There is none under way. The caller holds mu.
func (c *Collector) begin(trigger policy.Trigger, d policy.Decision, gate *Gate, now time.Duration) *collection {
	if c.closed {
		return nil
	}
	r := c.newCollection(trigger, d, gate)
	r.begin, r.expected, r.processor = now, c.expected.Cost, c.engine.processor()
	if gate != nil {
		r.live, r.allocated = gate.source.Sample().Live, gate.source.Allocated()
	}
	if gate.gauge() != nil && readPending().waiting() {
		c.stats.Overtaken++
	}
	c.current.Store(r)
	c.seeLast(now)
	c.spawn(func() { c.drive(r) })
	return r
}

// hold keeps the caller until r has settled, and counts that as exposed pause.
func (c *Collector) hold(r *collection) { c.holdFrom(r, c.Now()) }

func (c *Collector) holdFrom(r *collection, since time.Duration) {
	select {
	case <-r.done:
		return
	default:
	}
	c.mu.Lock()
	r.held = min(r.held, since)
	c.mu.Unlock()
	r.task.region("hold", func() { <-r.done })
	c.paused(r, since)
}

// drive is the goroutine of a cycle.
func (c *Collector) drive(r *collection) {
	c.debug(logBegan, func() []slog.Attr { return append(r.attrs(), r.gate.attrs()...) })
	c.mark(r)
	c.settle(r)
	if g := r.gate.gauge(); g != nil {
		g.Look() // its ticker may come a slice later
	}
}

// mark runs the cycle, and finds the dead.
func (c *Collector) mark(r *collection) {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.promoteAll()
	r.task.region("mark", func() { r.marking = c.engine.mark() })
	c.walk(r)
}

// promoteAll has the next cycle find young objects, too.
func (c *Collector) promoteAll() {
	for _, reg := range c.allRegistries() {
		reg.promoteAll()
	}
}

// walk finds what belongs to the dead, and begins to give it back. It notes which
// cycles of the process it has settled. The caller holds settling.
func (c *Collector) walk(r *collection) {
	c.mu.Lock()
	now := c.Now()
	c.read(now)
	c.seeAll(now)
	c.seen = c.runtime.cycles
	c.mu.Unlock()
	for _, reg := range c.allRegistries() {
		reg.walk(r)
	}
}

// settle waits for what was found to be given back, and reports the cycle.
func (c *Collector) settle(r *collection) (freed int64) {
	r.task.region("settle", c.releases.wait)
	objects, yields := c.releases.close(r)
	freed = c.finish(r, objects, yields)
	if freed > 0 && r.gate != nil && r.gate.space == pressure.Host { // which may be the allocator's
		c.trimmer.cycled(c)
	}
	if r.tracked == 0 {
		c.letGo()
	}
	r.task.end(freed)
	c.debug(logEnded, func() []slog.Attr {
		return append(r.attrs(),
			slog.Int64("freed_bytes", freed), slog.Int("objects", objects), slog.Int64("live_after_bytes", r.cycle.LiveAfter),
			slog.Duration("duration", r.cycle.Duration), slog.Duration("exposed", r.cycle.Exposed), c.counters())
	})
	c.logSurvivors()
	return freed
}

// finish takes stock, tells the policy, and lets go of those who wait. It returns
// the bytes that the cycle freed, of all spaces.
func (c *Collector) finish(r *collection, objects int, yields map[*Gate]int64) (freed int64) {
	tracked := 0
	for _, reg := range c.allRegistries() {
		tracked += reg.Len()
	}
	c.mu.Lock()
	defer c.unlock()
	defer close(r.done)
	c.settled.Add(1)
	c.tracked, r.tracked = tracked, tracked
	end, processor := c.Now(), c.engine.processor()-r.processor
	c.time(r, end, processor, objects)
	c.read(end)
	freed = c.takeStock(r, yields)
	c.current.CompareAndSwap(r, nil)
	if !c.closed {
		c.throttle.learn(r.cycle, r.gate, end, processor, max(0, r.live-yields[r.gate]))
		c.tellPolicy(r.cycle)
		c.wakeUp()
		if r.cycle.Freed > 0 && r.gate.isSoft() && c.idler.every > 0 {
			c.askLater(r.gate, slice)
		}
	}
	c.ended(r, end, processor, freed, objects)
	return freed
}

// time says how long r took, which gave so many objects back, and learns from that. The caller holds mu.
func (c *Collector) time(r *collection, end, processor time.Duration, objects int) {
	y := &r.cycle
	y.Start, y.Trigger, y.Action = r.begin, r.trigger, r.action
	if r.trigger == policy.TriggerNatural {
		y.Duration, y.Work = min(end, c.expected.Cost), c.expected.Work // nobody timed it
		y.Start = end - y.Duration
		return
	}
	processors := runtime.GOMAXPROCS(0)
	y.Duration, y.Work = end-r.begin-r.waited, processor/time.Duration(processors)
	y.Exposed = max(0, end-max(r.held, r.begin))
	c.expected.Learn(policy.Measured{
		Length: y.Duration - r.marking.swept, Work: processor, Processors: processors,
		Scan: c.runtime.scan, Tracked: c.tracked + objects, Polls: r.marking.polls, Waiting: r.marking.waiting,
	})
}

// takeStock notes in which state r has left the sources, and returns the bytes that it freed. The caller holds mu.
func (c *Collector) takeStock(r *collection, yields map[*Gate]int64) (freed int64) {
	for _, g := range c.gates {
		s := g.rebase()
		g.yield.Add(-yields[g])
		freed += yields[g]
		if r.gate != nil && g.shares(r.gate) {
			r.cycle.Freed += yields[g]
			r.cycle.LiveAfter += s.Live
		}
		if g == r.gate {
			r.cycle.Limit, r.cycle.Wanted = s.Limit, g.wanted.Swap(0)
		}
	}
	if r.cycle.Limit > 0 {
		r.cycle.Limit += r.cycle.LiveAfter - r.gate.liveAfter
	}
	return freed
}

// Reap gives back what a cycle that the runtime ran by itself has found dead,
// if there was one since the last cycle, and returns how many bytes that were.
// It does not collect, and does nothing while a cycle is under way.
func (c *Collector) Reap() int64 {
	if c.running() {
		return 0 // which would have to be waited for
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

// natural returns the cycle that the runtime has run by itself, or nil.
func (c *Collector) natural() *collection {
	c.mu.Lock()
	defer c.unlock()
	now := c.Now()
	c.read(now)
	if c.current.Load() != nil || c.runtime.cycles == c.seen {
		return nil
	}
	top, _ := c.mostPressed(nil, 0)
	return c.newCollection(policy.TriggerNatural, policy.Decision{Action: policy.Overlap}, top)
}

// cycleEnded is told of the end of a cycle by the engine.
func (c *Collector) cycleEnded() {
	c.mu.Lock()
	defer c.unlock()
	c.noticeCycles(c.Now())
}
