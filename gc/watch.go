package gc

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Gauge is memory that someone else counts and frees: the images of a C
// library, the process's resident memory. All methods are safe for concurrent use.
type Gauge struct {
	c     *Collector
	gate  *Gate
	read  func() int64
	limit atomic.Int64
	level atomic.Int64 // bytes at the last look
	grown atomic.Int64 // bytes at first, and the sum of all rises between two looks

	mu       sync.Mutex    // held while looking
	began    time.Duration // when the last mark did
	since    time.Duration // the same or, once it has been judged, when that was
	fallen   int64         // sum of all falls since then
	low      int64         // lowest level since then
	byItself float64       // bytes per ns that the program freed before that mark
	before   pending       // finalizers and cleanups that had run by then
	given    int64         // bytes that trims of the allocator had given back at the last look, which is no yield
	outcome  outcome       // of it; high = 0 once it has been judged
	brought  int64         // bytes that the judged ones have brought back
	credited int64         // of all that were brought back, those that collections have counted
	reuse    reuse
	log      accountLog // of its moves, for a recording
	broken   bool       // its function has panicked
	backoff  backoff
	due      due
	stop     chan struct{}
	once     sync.Once
}

// A ticker looks each lookOften while a gauge moves, and after each look that finds
// it unmoved waits twice as long, up to lookSeldom, or up to the time in which the process gets a slice of processor
// time: memory moves where the program runs. A look takes a thousandth of that.
const (
	lookOften  = 2 * time.Millisecond
	lookSeldom = 100 * time.Millisecond
)

// A slice is how long a goroutine runs while others wait (forcePreemptNS in runtime/proc.go).
const slice = 10 * time.Millisecond

// Watch makes c collect for the memory whose bytes read returns. Finalizers and
// cleanups of the program or of a library free it; a cycle is what makes them run.
// Read is called by a ticker: each 2 ms while the gauge moves, each 100 ms while the
// process does nothing; a program may call [Gauge.Look] where much has just been
// allocated. Read must not block and must not call the collector. Nobody is
// ever held for a gauge. A recording has each rise between two looks as an object, and falls as the end
// of the oldest ones.
//
// The yield of a cycle is what the gauge fell by once finalizers and cleanups
// have run, which is waited for, but not longer than settleBound. It is never
// exact: the program allocates and frees meanwhile. Memory that a cycle
// does not bring back is no garbage, and what policies learn from that is to wait longer.
//
// Close the gauge when its memory is no concern any more.
func Watch(c *Collector, read func() int64) *Gauge {
	g := &Gauge{c: c, read: read, given: c.trimmer.gave.Load(), stop: make(chan struct{})}
	g.low = g.reading()
	g.level.Store(g.low)
	g.grown.Store(g.low)
	g.log.last = gauges.Add(1) * gaugeIDs
	if c.recording.Load() && g.low > 0 {
		g.log.more(c, g.low, gaugeSite, pressure.Host)
	}
	g.backoff.level = g.low
	g.gate = newGate(c, g)
	g.gate.open()
	c.addRegistry((*gaugeWalk)(g))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spawn(g.tick)
	return g
}

// SetLimit says how many bytes the gauge is to stay below; 0, as at first, is
// no limit. It is a goal: a gauge refuses nothing.
func (g *Gauge) SetLimit(bytes int64) { g.limit.Store(bytes) }

// Close makes the collector forget the gauge.
func (g *Gauge) Close() {
	g.once.Do(func() {
		close(g.stop)
		g.gate.Close()
		g.c.dropRegistry((*gaugeWalk)(g))
	})
}

// Sample implements [Source] with what the last look saw.
func (g *Gauge) Sample() pressure.Sample {
	level := g.level.Load()
	return pressure.Sample{Space: pressure.Host, Live: level, Reserved: level, Limit: g.limit.Load()}
}

// Allocated implements [Source]: the gauge's level at first, and all rises since.
func (g *Gauge) Allocated() int64 { return g.grown.Load() }

// Look reads the gauge, and asks the policy if it has risen. While cycles bring memory back it asks where the gauge
// stands still, too: an allocator may take what is new from what was freed before, so that garbage does not show.
// It returns the bytes that it read.
func (g *Gauge) Look() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.level.Load()
	level := g.see()
	if g.outcome.high > 0 && g.c.cleaned(g.outcome.marks) {
		g.judge()
	}
	if level < was {
		g.gate.fell(level)
	}
	now := g.c.Now()
	switch {
	case g.due.wait(readPending(), now): // what is due is as good as freed
	case level <= was && !g.backoff.proved(): // nothing grows
	case g.began > 0 && float64(now-g.began)*g.c.throttle.Gauges < float64(time.Second): // a cycle has only just begun
	case g.overAtFirst(level) || !g.backoff.on(level, goHeap(), now):
		live := min(was, level) + g.reuse.told
		g.reuse.told = g.reuse.since(now - g.began)
		g.gate.rose(live, max(0, level+g.reuse.told-live))
	}
	return level
}

// A reuse is what a program allocates from memory that its allocator had kept, so that a gauge does not show it. Each finalizer or cleanup that runs
// stands for as many bytes as the gauge has lately grown by for one, at most; what it has grown by less than that was kept, and taken again.
// A wrong guess costs keptShare of the processor time, until it is forgotten.
type reuse struct {
	each  float64 // bytes for one that runs
	kept  float64 // bytes that were taken again before the last cycle
	rate  float64 // of it, in bytes per ns
	grown int64   // of the gauge, when the last mark began
	told  int64   // bytes since the last cycle, that the policy knows
}

const keepEach = 63.0 / 64 // per cycle

// learn is told of a cycle that so many have run after, and of the growth and the time before it.
func (r *reuse) learn(ran, grown int64, lasted time.Duration) {
	r.kept = 0
	if ran > 0 && lasted > 0 {
		r.each = max(keepEach*r.each, float64(grown)/float64(ran))
		r.kept = max(0, r.each*float64(ran)-float64(grown))
		r.rate = r.kept / float64(lasted)
	}
}

// since is how much is likely to be taken in a time after a cycle.
func (r *reuse) since(d time.Duration) int64 { return int64(min(r.kept, r.rate*float64(d))) }

// A due is finalizers and cleanups that are queued. No cycle is asked for until they have run: another one
// would find little more, and those queue up behind. But if none runs for stuckAfter, one of them blocks, and does not hold up what others free.
type due struct {
	ran   uint64 // so far
	since time.Duration
	waits bool // for some
	stuck bool
}

const stuckAfter = 10 * time.Second

func (d *due) wait(p pending, now time.Duration) bool {
	if ran := p.finalized + p.cleaned; ran != d.ran || !p.waiting() {
		*d = due{ran: ran, since: now}
	}
	d.stuck = now-d.since >= stuckAfter
	d.waits = p.waiting() && !d.stuck
	return d.waits
}

// Stuck reports whether finalizers or cleanups are due of which none has run for 10 s: one of them blocks, so that what the others
// hold is not freed. Runtimes before Go 1.26 do not say so.
func (g *Gauge) Stuck() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.due.stuck
}

// overAtFirst reports whether the gauge is above its limit, and no cycle was in vain yet.
func (g *Gauge) overAtFirst(level int64) bool {
	limit := g.limit.Load()
	return limit > 0 && level > limit && g.backoff.length == 0
}

// reading is what the program says, at least 0. After a panic of its function it is the last level for ever.
func (g *Gauge) reading() (level int64) {
	if g.broken {
		return g.level.Load()
	}
	if !g.c.strict {
		defer func() {
			if e := recover(); e != nil {
				g.broken, level = true, g.level.Load()
				go g.c.failed(fmt.Errorf("gc: the function of a gauge panicked and is off: %v\n%s", e, debug.Stack()))
			}
		}()
	}
	return min(max(0, g.read()), MaxBytes)
}

// see reads the gauge and adds up its moves. The caller holds mu.
func (g *Gauge) see() int64 {
	level := g.reading()
	was := g.level.Swap(level)
	g.grown.Add(max(0, level-was))
	given := g.c.trimmer.gave.Load()
	g.fallen = max(0, g.fallen+max(0, was-level)-(given-g.given))
	g.given = given
	g.low = min(g.low, level)
	g.backoff.see(level)
	g.record(level - was)
	return level
}

// gauges numbers those of the process, and gaugeSite stands in recordings for who allocates.
var gauges atomic.Uint64

const gaugeSite = "(gauge)"

// record notes a move in the recording: a rise as an object, a fall as the end of the oldest, which
// a cycle has found dead if its finalizers and cleanups run.
func (g *Gauge) record(moved int64) {
	switch {
	case moved == 0 || !g.c.recording.Load():
	case moved > 0:
		g.log.more(g.c, moved, gaugeSite, pressure.Host)
	case g.outcome.high > 0:
		g.log.less(g.c, -moved, trace.FreeCycle, pressure.Host)
	default:
		g.log.less(g.c, -moved, trace.FreeExplicit, pressure.Host)
	}
}

// freed is what the gauge has fallen by since the last mark began, beyond what the program
// frees by itself in such a time. The caller holds mu.
func (g *Gauge) freed() int64 {
	return max(0, g.fallen-int64(min(g.byItself*float64(g.c.Now()-g.since), math.MaxInt64/2)))
}

// judge learns whether the last cycle was worth it. The caller holds mu.
func (g *Gauge) judge() {
	o, now := g.outcome, g.c.Now()
	o.freed, o.ran, o.work = g.freed(), readPending().ran(g.before), g.c.processorTime()
	g.backoff.learn(o, now)
	g.reuse.learn(o.ran, o.risen, o.lasted)
	g.brought += o.freed
	if o.ran > 0 || o.freed >= leastYield { // also where the level stands still, since the allocator kept all
		g.c.trimmer.cycled(g.c)
	}
	g.outcome, g.fallen, g.since, g.low = outcome{}, 0, now, g.level.Load()
}

// Resting returns for how long the gauge asks for no cycle, since the last
// one gave nearly nothing back: what it reads is held, or leaks. It is 0 while cycles are worth it.
func (g *Gauge) Resting() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.backoff.length
}

// longest is the longest time to the next look, where the process has got so much processor time in the last one. While finalizers are due it
// is short, since a cycle may follow them.
func (g *Gauge) longest(last, got time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.due.waits {
		return lookOften
	}
	return max(lookOften, min(lookSeldom, time.Duration(float64(slice)*float64(last)/float64(max(1, got)))))
}

// tick is the goroutine that looks.
func (g *Gauge) tick() {
	wait := lookOften
	timer := time.NewTimer(wait)
	defer timer.Stop()
	got, at := processTime(), time.Now()
	for last := g.level.Load(); ; {
		select {
		case <-g.stop:
			return
		case <-g.c.stopped:
			return
		case <-timer.C:
		}
		level, hadGot, hadAt := g.Look(), got, at
		got, at = processTime(), time.Now()
		moved := max(level-last, last-level)
		if wait = min(2*wait, g.longest(at.Sub(hadAt), got-hadGot)); moved > max(level/256, 1<<20) {
			wait, last = lookOften, level
		}
		timer.Reset(wait)
	}
}

// rose asks the policy about request bytes that were added to live, and holds nobody.
func (g *Gate) rose(live, request int64) {
	c := g.c
	now := c.Now()
	c.mu.Lock()
	defer c.unlock()
	d, top := c.decide(policy.Point{Now: now, At: policy.Allocation, Request: request}, g, live)
	if d.Action == policy.Block {
		d.Action = policy.Overlap
	}
	c.obey(d, top, now)
}

// processorTime is what the next cycle is expected to take.
func (c *Collector) processorTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expected.Work
}

// fell notes that finalizers, or the program, freed more than what was seen when
// the last cycle had settled.
func (g *Gate) fell(live int64) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.liveAfter = min(g.liveAfter, live)
}

// A gaugeWalk is a gauge as a cycle sees it: what it finds dead, others give back.
type gaugeWalk Gauge

func (g *gaugeWalk) Len() int { return 0 }

// promoteAll is called before the mark. If the last cycle has not been judged yet, both are judged as one.
func (g *gaugeWalk) promoteAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	level, now := (*Gauge)(g).see(), g.c.Now()
	began := g.began
	g.brought += g.reuse.told
	g.began, g.reuse.told = now, 0
	if g.outcome.high > 0 {
		return
	}
	if d := now - g.since; d >= lookOften {
		g.byItself = float64(g.fallen) / float64(d)
	}
	g.outcome = outcome{began: now, grown: level - g.low, risen: g.grown.Load() - g.reuse.grown, lasted: now - began}
	g.reuse.grown = g.grown.Load()
	g.fallen, g.since, g.before = 0, now, readPending()
}

// walk is called after the mark. It waits for a slice until finalizers and cleanups have run, and counts what the
// gauge has fallen by. On busy processors that may take long, since the sweep, which
// finds what is due, gives way to the program after each span; the next cycle begins with what is left of the
// sweep, and does not give way. So the next cycle may start before this one is measured; then both are measured together.
func (g *gaugeWalk) walk(r *collection) {
	g.begin(r.trigger != policy.TriggerNatural)
	r.await(slice, g.settled)
	r.credit(g.gate, g.credit())
}

// begin notes what the mark has left.
func (g *gaugeWalk) begin(asked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := &g.outcome
	if o.high == 0 {
		o.high, o.marks = max(1, (*Gauge)(g).see()), g.c.engine.marked()
	}
	o.asked = o.asked || asked
}

// settled looks, and reports whether nothing more is to come.
func (g *gaugeWalk) settled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if (*Gauge)(g).see(); g.outcome.high > 0 && g.c.cleaned(g.outcome.marks) {
		(*Gauge)(g).judge()
	}
	return g.outcome.high == 0
}

// credit returns what has come back and was not counted yet.
func (g *gaugeWalk) credit() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	brought := g.brought
	if g.outcome.high > 0 {
		brought += (*Gauge)(g).freed()
	}
	credit := max(0, brought-g.credited)
	g.credited += credit
	return credit
}
