package gc

import (
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

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
	grown atomic.Int64 // sum of all rises between two looks

	mu       sync.Mutex    // held while looking
	since    time.Duration // when the last mark began or, once it has been judged, that was
	fallen   int64         // sum of all falls since then
	low      int64         // lowest level since then
	byItself float64       // bytes per ns that the program freed before that mark
	ran      uint64        // finalizers and cleanups that had run before it
	outcome  outcome       // of it; high = 0 once it has been judged
	brought  int64         // bytes that the last one to be judged brought back
	log      accountLog    // of its moves, for a recording
	rest     rest
	stop     chan struct{}
	once     sync.Once
}

// A ticker looks each lookOften while a gauge moves, and after each look that finds
// it unmoved waits twice as long, up to lookSeldom.
const (
	lookOften  = 2 * time.Millisecond
	lookSeldom = 100 * time.Millisecond
)

// Watch makes c collect for the memory whose bytes read returns. Finalizers and
// cleanups of the program or of a library free it; a cycle is what makes them run.
// Read is called by a ticker: each 2 ms while the gauge moves, each 100 ms while it
// does not; a program may call [Gauge.Look] where much has just been
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
	g := &Gauge{c: c, read: read, stop: make(chan struct{})}
	g.low = read()
	g.level.Store(g.low)
	g.log.last = gauges.Add(1) * gaugeIDs
	if c.recording.Load() && g.low > 0 {
		g.log.more(c, g.low, gaugeSite, pressure.Host)
	}
	g.rest.level = g.low
	g.gate = c.Watch(g)
	c.addRegistry((*gaugeWalk)(g))
	c.goroutine.Go(g.tick)
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

// Look reads the gauge, and asks the policy if it has risen. It returns the bytes
// that it read.
func (g *Gauge) Look() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.level.Load()
	level := g.see()
	if g.outcome.high > 0 && g.c.cleaned(g.outcome.marks) {
		g.judge()
	}
	switch {
	case level <= was:
		g.gate.fell(level)
	case g.overAtFirst(level) || !g.rest.on(level, goHeap(), g.c.Now()):
		g.gate.rose(was, level-was)
	}
	return level
}

// overAtFirst reports whether the gauge is above its limit, and no cycle was in vain yet.
func (g *Gauge) overAtFirst(level int64) bool {
	limit := g.limit.Load()
	return limit > 0 && level > limit && g.rest.length == 0
}

// see reads the gauge and adds up its moves. The caller holds mu.
func (g *Gauge) see() int64 {
	level := g.read()
	was := g.level.Swap(level)
	g.grown.Add(max(0, level-was))
	g.fallen += max(0, was-level)
	g.low = min(g.low, level)
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
	return max(0, g.fallen-toBytes(g.byItself*float64(g.c.Now()-g.since)))
}

// judge learns whether the last cycle was worth it. The caller holds mu.
func (g *Gauge) judge() {
	o, now := g.outcome, g.c.Now()
	o.freed, o.ran, o.work = g.freed(), int64(readPending().executed-g.ran)-sentinels.Load(), g.c.processorTime()
	g.rest.learn(o, now)
	g.brought = o.freed
	g.outcome, g.fallen, g.since, g.low = outcome{}, 0, now, g.level.Load()
}

// Resting returns for how long the gauge asks for no cycle, since the last
// one gave nearly nothing back: what it reads is held, or leaks. It is 0 while cycles are worth it.
func (g *Gauge) Resting() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rest.length
}

// tick is the goroutine that looks.
func (g *Gauge) tick() {
	wait := lookOften
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for last := g.level.Load(); ; {
		select {
		case <-g.stop:
			return
		case <-g.c.stopped:
			return
		case <-timer.C:
		}
		level := g.Look()
		moved := max(level-last, last-level)
		if wait = min(2*wait, lookSeldom); moved > max(level/256, 1<<20) {
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
	d, top := c.decide(Point{Now: now, At: Allocation, Request: request}, g, live)
	if d.Action == Block {
		d.Action = Overlap
	}
	c.obey(d, top, now)
}

// processorTime is what the next cycle is expected to take.
func (c *Collector) processorTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work
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

// promoteAll is called before the mark.
func (g *gaugeWalk) promoteAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	level, now := (*Gauge)(g).see(), g.c.Now()
	if d := now - g.since; g.outcome.high == 0 && d >= lookOften {
		g.byItself = float64(g.fallen) / float64(d)
	}
	g.outcome = outcome{grown: level - g.low}
	g.fallen, g.since, g.ran = 0, now, readPending().executed
}

// walk is called after the mark. It waits until finalizers and cleanups have run, and
// counts what the gauge has fallen by. A cycle that takes longer than it waits for is
// judged by a later look.
func (g *gaugeWalk) walk(r *collection) {
	g.begin(r.trigger != TriggerNatural)
	var freed int64
	hurried := false
	r.await(func() (done bool) {
		var risen bool
		freed, risen, done = g.wait()
		if risen && !done && !hurried {
			hurried = true
			g.c.hurry()
		}
		return done
	})
	r.credit(g.gate, freed)
}

// begin notes what the mark has left.
func (g *gaugeWalk) begin(asked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.outcome.high, g.outcome.asked, g.outcome.marks = max(1, (*Gauge)(g).see()), asked, g.c.engine.marked()
}

// wait looks, and returns what has come back so far, whether the gauge stands higher
// since the mark by as much as before the mark, and whether nothing more is to come.
func (g *gaugeWalk) wait() (freed int64, risen, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	level, o := (*Gauge)(g).see(), g.outcome
	if o.high == 0 { // a look has judged it
		return g.brought, false, true
	}
	freed, risen, done = (*Gauge)(g).freed(), level-o.high >= max(o.grown, leastYield), g.c.cleaned(o.marks)
	if done {
		(*Gauge)(g).judge()
	}
	return freed, risen, done
}

// hurry ends the sweep of the last cycle, which on busy cores takes many times as long as
// a cycle: it gives way to the program after each span. The next cycle begins with what is
// left of it, and does not give way.
func (c *Collector) hurry() {
	c.engine.mark()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read(c.Now())
	c.seen = c.runtime.cycles
}

// pending is how far the runtime is with finalizers and cleanups.
type pending struct{ queued, executed uint64 }

// readPending takes 0.3 us.
func readPending() pending {
	s := [...]metrics.Sample{
		{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/finalizers/queued:finalizers"},
		{Name: "/gc/cleanups/executed:cleanups"}, {Name: "/gc/finalizers/executed:finalizers"},
	}
	metrics.Read(s[:])
	return pending{s[0].Value.Uint64() + s[1].Value.Uint64(), s[2].Value.Uint64() + s[3].Value.Uint64()}
}

func (p pending) waiting() bool { return p.executed < p.queued }
