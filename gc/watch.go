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
const HostPolicy = "pacer:memory=3e-9"

// A Gauge is memory that someone else counts and frees: the images of a C
// library, the process's resident memory. All methods are safe for concurrent use.
type Gauge struct {
	c      *Collector
	gate   *Gate
	read   func() int64
	limit  atomic.Int64
	level  atomic.Int64 // bytes at the last look
	grown  atomic.Int64 // sum of all rises between two looks
	before int64        // level before the mark under way; guarded by the collector's settling

	mu   sync.Mutex // held while looking
	rest rest
	stop chan struct{}
	once sync.Once
}

// A ticker looks each lookOften while a gauge moves, and after each look that finds
// it unmoved waits twice as long, up to lookSeldom.
const (
	lookOften  = 5 * time.Millisecond
	lookSeldom = 100 * time.Millisecond
)

// Watch makes c collect for the memory whose bytes read returns. Finalizers and
// cleanups of the program or of a library free it; a cycle is what makes them run.
// Read is called by a ticker: each 5 ms while the gauge moves, each 100 ms while it
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
	level := g.read()
	switch {
	case level <= was:
		g.gate.fell(level)
	case !g.rest.on(level, g.c.Now()):
		g.gate.rose(was, level-was)
	}
	g.grown.Add(max(0, level-was))
	g.level.Store(level)
	return level
}

// A rest is how a gauge backs off: after a cycle that gave back less than futile of
// its bytes, none is asked for until time has passed, twice as long with each such
// cycle in a row, and the gauge has risen by an eighth. A fall by an eighth, or a cycle
// that gave back more, ends it.
//
// (The OpenTelemetry collector's memory limiter has the share and the doubling, LF Edge
// EVE's watcher the growth: both came to it after cycles back to back.)
type rest struct {
	length time.Duration // of the last one; 0 = the last cycle was worth it
	until  time.Duration // on the collector's clock
	level  int64         // that the gauge had then
}

const (
	futile    = 0.05
	firstRest = time.Second
	lastRest  = 2 * time.Minute
)

func (r *rest) on(level int64, now time.Duration) bool {
	if r.length == 0 {
		return false
	}
	if level < r.level-r.level/8 {
		*r = rest{}
		return false
	}
	return now < r.until || level < r.level+r.level/8
}

// learn is told what a cycle freed of high bytes.
func (r *rest) learn(freed, high int64, now time.Duration) {
	if float64(freed) >= futile*float64(high) {
		*r = rest{}
		return
	}
	r.length = min(max(2*r.length, firstRest), lastRest)
	r.until, r.level = now+r.length, high-freed
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
	defer c.mu.Unlock()
	d, top := c.decide(Point{Now: now, At: Allocation, Request: request}, g, live)
	if d.Action == Block {
		d.Action = Overlap
	}
	c.obey(d, top, now)
}

// fell notes that finalizers, or the program, freed more than what was seen when
// the last cycle had settled.
func (g *Gate) fell(live int64) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.liveAfter = min(g.liveAfter, live)
}

// settleBound is the longest that a cycle waits for finalizers and cleanups.
const settleBound = 100 * time.Millisecond

// A gaugeWalk is a gauge as a cycle sees it: what it finds dead, others give back.
type gaugeWalk Gauge

func (g *gaugeWalk) Len() int { return 0 }

// promoteAll is called before the mark.
func (g *gaugeWalk) promoteAll() { g.before = g.read() }

// walk is called after the mark. It waits until the gauge has come to rest, and
// counts what it has fallen by.
func (g *gaugeWalk) walk(func(any)) (objects int) {
	level := g.read()
	high := max(g.before, level)
	var last pending
	still := 0
	for end := time.Now().Add(settleBound); still < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		now, seen := g.read(), readPending()
		if still++; now < level || seen.waiting() || seen != last {
			still = 0
		}
		level, last = min(level, now), seen
	}
	freed := max(0, high-level)
	(*Gauge)(g).settled(level, high)
	g.gate.yield.Add(freed)
	return 0
}

// settled notes the level after a cycle, and what rose beside it.
func (g *Gauge) settled(level, high int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grown.Add(max(0, high-g.level.Load()))
	g.level.Store(level)
	g.rest.learn(high-level, high, g.c.Now())
}

// pending is how far the runtime is with finalizers and cleanups.
type pending struct{ queued, executed uint64 }

func readPending() pending {
	s := [...]metrics.Sample{
		{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/finalizers/queued:finalizers"},
		{Name: "/gc/cleanups/executed:cleanups"}, {Name: "/gc/finalizers/executed:finalizers"},
	}
	metrics.Read(s[:])
	return pending{s[0].Value.Uint64() + s[1].Value.Uint64(), s[2].Value.Uint64() + s[3].Value.Uint64()}
}

func (p pending) waiting() bool { return p.executed < p.queued }
