package gc

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/internal/freed"
	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Gauge reads memory that other code counts and frees, such as the images of a C library or the
// process's resident memory. All methods are safe for concurrent use.
type Gauge struct {
	c     *Collector
	gate  *Gate
	read  func() int64
	limit atomic.Int64
	seen  atomic.Pointer[sight]
	stop  chan struct{}
	once  sync.Once

	mu     sync.Mutex // held while looking; taken before the collector's
	rules  *governor.Gauge
	log    observe.Account // its moves, for a recording; guarded by the collector's mu
	told   int             // what the last line said of cycles: they bring nothing (-1), something (0), much (1)
	broken bool            // the function read has panicked
}

// A sight is the result of the last look.
type sight struct {
	level     int64 // bytes
	allocated int64 // the first level, plus all rises between two looks
	worth     governor.Worth
}

// A ticker looks every lookOften while a gauge moves. After each look without a move it waits twice
// as long, up to lookSeldom. It does not wait longer than the process takes to use a slice of
// processor time, because memory moves only while the program runs.
const (
	lookOften    = 2 * time.Millisecond
	lookRationed = 32 * time.Millisecond // while cycles are rationed
	lookSeldom   = 100 * time.Millisecond
	lookSlice    = 10 * time.Millisecond // forcePreemptNS in runtime/proc.go
)

// Watch makes c collect for the memory whose bytes read returns. Finalizers and cleanups of the
// program or of a library free that memory, and a cycle makes them run. A ticker calls read: every
// 2 ms while the gauge moves, and every 32 to 100 ms while cycles bring little or the process does
// nothing. Read must not block and must not call the collector. Callers are never held for a gauge.
// A recording shows each rise between two looks as an object, and each fall as the end of the oldest
// objects.
//
// The yield of a cycle is the number of bytes that the gauge falls by once finalizers and cleanups
// have run. It is never exact, because the program allocates and frees meanwhile. Memory that a
// cycle does not bring back is not garbage, and policies then wait longer.
//
// Close the gauge when it is no longer needed.
func Watch(c *Collector, read func() int64) *Gauge {
	g := &Gauge{c: c, read: read, log: observe.Account{Gauge: true}, stop: make(chan struct{})}
	g.seen.Store(&sight{})
	g.rules = governor.NewGauge(g.bytes(), freed.Given())
	g.publish(0)
	g.gate = newGate(c, g)
	g.gate.gauge, g.gate.memory.Gauge = g, true
	g.gate.open()
	g.record(g.rules.Level)
	c.addWalker(g)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spawn(g.tick)
	return g
}

// SetLimit sets the number of bytes that the gauge should stay below. 0, the initial value, is no
// limit. The limit is a goal: a gauge refuses nothing.
func (g *Gauge) SetLimit(bytes int64) { g.limit.Store(bytes) }

// Close removes the gauge from its collector.
func (g *Gauge) Close() {
	g.once.Do(func() {
		close(g.stop)
		g.gate.Close()
		g.c.dropWalker(g)
	})
}

// Sample implements [Source] with the result of the last look.
func (g *Gauge) Sample() pressure.Sample {
	level := g.seen.Load().level
	return pressure.Sample{Space: pressure.Host, Live: level, Reserved: level, Limit: g.limit.Load()}
}

// Allocated implements [Source]. It returns the first level of the gauge plus all rises since.
func (g *Gauge) Allocated() int64 { return g.seen.Load().allocated }

// Look reads the gauge, and asks the policy if it has risen. While cycles bring memory back, Look
// asks even if the gauge stands still. It returns the bytes that it read.
func (g *Gauge) Look() (level int64) {
	c := g.c
	c.mu.Lock()
	work := c.governor.Work
	c.mu.Unlock()
	var now time.Duration
	var l governor.Look
	g.step(func(at time.Duration, r *governor.GaugeReading) (trim bool) {
		now, level, l = at, r.Level, g.rules.Look(at, r, g.limit.Load(), work)
		return l.Trim
	})
	if l.Ask {
		c.decide(now, func() governor.Order {
			g.gate.memory.Live = l.Live
			return c.governor.Allocate(now, &g.gate.memory, l.Request)
		})
	}
	return level
}

// step takes a reading, passes it to one of the rules' steps, and publishes the changes. F reports
// whether to trim.
func (g *Gauge) step(f func(at time.Duration, r *governor.GaugeReading) (trim bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, was, r := g.c, g.rules.Level, g.reading()
	now := c.Now()
	trim := f(now, &r)
	if news := g.publish(now); news != "" {
		c.log.Say(slog.LevelDebug, false, news)
	}
	g.record(r.Level - was)
	if r.Level < was {
		c.mu.Lock()
		g.gate.memory.Fell(r.Level)
		c.mu.Unlock()
	}
	if trim {
		c.freedHost(g)
	}
}

// publish publishes what the rules have seen. It returns a line for the log if several cycles show
// something else than the last line said. The end of an earned share is no news.
func (g *Gauge) publish(at time.Duration) (news string) {
	w := g.rules.Worth(at)
	g.seen.Store(&sight{g.rules.Level, g.rules.Allocated, w})
	if now := cmp.Compare(w.Share, governor.LeastShare); w.Cycles >= 8 && (now > g.told || now < 0 && g.told >= 0) {
		g.told, news = now, "eagergc: "+sayWorth(w)
	}
	return news
}

// sayWorth says what cycles bring back.
func sayWorth(w governor.Worth) string {
	found := "cycles bring memory back here"
	switch {
	case w.Cycles == 0:
		found = "cycles have not been tried here"
	case w.Share < governor.LeastShare:
		found = "cycles bring almost nothing here"
	case w.Share > governor.LeastShare:
		found = "memory had grown much, and cycles found dead objects"
	}
	return fmt.Sprintf("%s: memory fell by %v in %d cycles; they may take %.3g %% of the program's processor time", found, pressure.Bytes(w.Freed), w.Cycles, 100*w.Share)
}

// Barren reports whether the last cycles gave back almost nothing. The memory is then in use, or
// leaks, and cycles for it are rare.
func (g *Gauge) Barren() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rules.Barren()
}

// bytes returns the result of the program's function, at least 0. After a panic of that function
// it always returns the last level.
func (g *Gauge) bytes() (level int64) {
	if g.broken {
		return g.seen.Load().level
	}
	defer g.c.contain(func(err error) {
		g.broken, level = true, g.seen.Load().level
		go g.c.failed(fmt.Errorf("gc: the function of a gauge %w", err))
	})
	return min(max(0, g.read()), MaxBytes)
}

// reading reads the gauge and the other values that its rules need. It reads the gauge last, so that
// the level is one after all finalizers that are seen to have run.
func (g *Gauge) reading() governor.GaugeReading {
	p := g.c.engine.Pending()
	level := g.bytes()
	return governor.GaugeReading{
		Level: level, Trimmed: freed.Given(), Ran: p.Ran(), Waiting: p.Waiting(), Marked: p.Marked, Swept: p.Swept, Heap: goruntime.Heap(),
		Processor: g.c.engine.Used() / time.Duration(goruntime.Processors()),
	}
}

// gaugeSite is the allocation site of a gauge's memory in recordings.
const gaugeSite = "(gauge)"

// record notes a move in the recording. A fall counts as freed by a cycle while one is judged.
func (g *Gauge) record(moved int64) {
	if moved == 0 {
		return
	}
	why := trace.FreeExplicit
	if g.rules.Judging() {
		why = trace.FreeCycle
	}
	g.c.recordNow(func(to *observe.Recorder) { g.log.Follow(to, g.seen.Load().level, gaugeSite, why, pressure.Host) })
}

// pace returns the shortest and the longest time to the next look, and the bytes by which the gauge
// must have moved for the next look to come at once. In the time last since the look before, the
// process used the processor time got. While finalizers are due looks are frequent, because a cycle
// may follow them. While the gauge is rationed they are rare, because each wakes an idle thread.
func (g *Gauge) pace(last, got time.Duration) (shortest, longest time.Duration, much int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rules.Due() {
		return lookOften, lookOften, 0
	}
	much = max(g.rules.Level/256, 1<<20)
	if g.rules.Rationed(g.c.Now()) {
		return lookRationed, lookSeldom, max(much, (g.rules.Level+2*goruntime.Heap())/16)
	}
	return lookOften, max(lookOften, min(lookSeldom, time.Duration(float64(lookSlice)*float64(last)/float64(max(1, got))))), much
}

// tick looks at the gauge until the gauge or its collector is closed.
func (g *Gauge) tick() {
	wait := lookOften
	timer := time.NewTimer(wait)
	defer timer.Stop()
	got, at := g.c.engine.Used(), time.Now()
	for last := g.seen.Load().level; ; {
		select {
		case <-g.stop:
			return
		case <-g.c.life.stopped:
			return
		case <-timer.C:
		}
		level, hadGot, hadAt := g.Look(), got, at
		got, at = g.c.engine.Used(), time.Now()
		shortest, longest, much := g.pace(at.Sub(hadAt), got-hadGot)
		if wait = min(max(shortest, 2*wait), longest); max(level-last, last-level) > much {
			wait, last = lookOften, level
		}
		timer.Reset(wait)
	}
}

// promoteAll is called before the mark.
func (g *Gauge) promoteAll() {
	g.step(func(at time.Duration, r *governor.GaugeReading) (trim bool) {
		g.rules.Marking(at, r)
		return false
	})
}

// walk is called after the mark. It frees nothing, because other code gives the memory back. It
// waits up to a slice until finalizers and cleanups have run, and counts the bytes that the gauge
// has fallen by. On busy processors they run later, when the next cycle may have started. Then both
// are measured together.
func (g *Gauge) walk(r *collection) {
	c := g.c
	g.step(func(_ time.Duration, reading *governor.GaugeReading) (trim bool) {
		g.rules.Marked(reading, r.Trigger != policy.TriggerNatural)
		return false
	})
	r.released.Await(lookSlice, func() (judged bool) {
		g.step(func(at time.Duration, reading *governor.GaugeReading) (trim bool) {
			judged, trim = g.rules.Settled(at, reading)
			return trim
		})
		return judged
	})
	g.mu.Lock()
	credit := g.rules.Credit(c.Now())
	g.mu.Unlock()
	c.releases.Credit(&r.released, &g.gate.returns, credit)
}
