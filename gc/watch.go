package gc

import (
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// HostPolicy is the text form of the policy for memory of the host, which is shared
// with others and so has a price: see [Pacer].
const HostPolicy = "pacer:memory=1e-8,cpu=1%"

// A Gauge is memory that someone else counts and frees: the images of a C
// library, the process's resident memory. All methods are safe for concurrent use.
type Gauge struct {
	c     *Collector
	gate  *Gate
	read  func() int64
	limit atomic.Int64
	level atomic.Int64 // bytes at the last look
	grown atomic.Int64 // sum of all rises between two looks

	mu     sync.Mutex // held while looking
	fallen int64      // sum of all falls since the last mark began
	high   int64      // level when the last mark had ended; 0 once its yield has been judged
	asked  bool       // it was not the runtime's own
	ran    uint64     // finalizers and cleanups that had run before it
	rest   rest
	stop   chan struct{}
	once   sync.Once
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
// ever held for a gauge.
//
// The yield of a cycle is what the gauge fell by once finalizers and cleanups
// have run, which is waited for, but not longer than settleBound. It is never
// exact: the program allocates and frees meanwhile. Memory that a cycle
// does not bring back is no garbage, and what policies learn from that is to wait longer.
//
// Close the gauge when its memory is no concern any more.
func Watch(c *Collector, read func() int64) *Gauge {
	g := &Gauge{c: c, read: read, stop: make(chan struct{})}
	g.level.Store(read())
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
	if g.high > 0 && g.drained() {
		g.judge()
	}
	switch {
	case level <= was:
		g.gate.fell(level)
	case !g.rest.on(level, g.c.Now()):
		g.gate.rose(was, level-was)
	}
	return level
}

// see reads the gauge and adds up its moves. The caller holds mu.
func (g *Gauge) see() int64 {
	level := g.read()
	was := g.level.Swap(level)
	g.grown.Add(max(0, level-was))
	g.fallen += max(0, was-level)
	return level
}

// drained reports whether all that the last cycle made due has run.
func (g *Gauge) drained() bool { return !g.c.engine.sweeping() && !readPending().waiting() }

// judge learns whether the last cycle was worth it. The caller holds mu.
func (g *Gauge) judge() {
	ran := int64(readPending().executed-g.ran) - sentinels.Load()
	g.rest.learn(g.fallen, g.high, ran, g.asked, g.c.expected(), g.c.Now())
	g.high = 0
}

// A rest is how a gauge backs off. After a cycle that gave nearly nothing back, none is
// asked for until time has passed, twice as long with each such cycle in a row, and the gauge
// has risen by an eighth. A fall by an eighth, a rise to more than twice as much, or a cycle that
// was worth it, ends it. Cycles of the runtime's own cost nothing and prolong nothing.
//
// (The OpenTelemetry collector's memory limiter has the share and the doubling, LF Edge
// EVE's watcher the growth: both came to it after cycles back to back.)
type rest struct {
	length time.Duration // of the last one; 0 = the last cycle was worth it
	until  time.Duration // on the collector's clock
	level  int64         // that the gauge had then
}

const (
	futile    = 0.05     // share of a gauge that a cycle is to free
	fewRun    = 8        // finalizers and cleanups that run after most cycles: those of files, and of collectors
	restShare = 0.01     // of the time, that a futile cycle may take
	restLeast = 16 << 20 // bytes that are worth a rest
	firstRest = 100 * time.Millisecond
	lastRest  = 2 * time.Minute
)

func (r *rest) on(level int64, now time.Duration) bool {
	if r.length == 0 {
		return false
	}
	if level < r.level-r.level/8 || level > 2*r.level+restLeast {
		*r = rest{}
		return false
	}
	return now < r.until || level < r.level+r.level/8
}

// learn is told that a cycle of the given cost freed so much of high bytes and let ran
// finalizers and cleanups run. Where many ran, memory went back to an
// allocator that keeps it, and serves from it what comes next: the gauge need not fall.
func (r *rest) learn(freed, high int64, ran int64, asked bool, cost, now time.Duration) {
	if float64(freed) >= futile*float64(high) || ran > fewRun {
		*r = rest{}
		return
	}
	if !asked {
		return
	}
	r.length = min(max(2*r.length, firstRest, time.Duration(float64(cost)/restShare)), lastRest)
	r.until, r.level = now+r.length, high-min(freed, high)
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

// expected is what the next cycle is expected to take.
func (c *Collector) expected() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cost
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
	(*Gauge)(g).see()
	g.fallen, g.ran = 0, readPending().executed
}

// walk is called after the mark. It waits until finalizers and cleanups have run, and
// counts what the gauge has fallen by. A cycle that takes longer than it waits for is
// judged by a later look.
func (g *gaugeWalk) walk(r *collection) {
	g.mu.Lock()
	g.high, g.asked = max(1, (*Gauge)(g).see()), r.trigger != TriggerNatural
	g.mu.Unlock()
	var freed int64
	r.awaitCleanups(g.c.engine, func() (done bool) {
		done = (*Gauge)(g).drained()
		g.mu.Lock()
		defer g.mu.Unlock()
		(*Gauge)(g).see()
		freed = g.fallen
		if done {
			(*Gauge)(g).judge()
		}
		return done
	})
	r.credit(g.gate, freed)
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
