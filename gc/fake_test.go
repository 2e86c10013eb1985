//go:build go1.25

package gc_test

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

const (
	ms  = time.Millisecond
	mib = 1 << 20
	gib = 1 << 30 // far above the heap of the tests, which gauges compare growth with
)

// A fake is Go's runtime in a bubble of testing/synctest, where time is virtual: it goes by only while all goroutines wait. A cycle
// finds what is dead when it begins.
type fake struct {
	start time.Time

	mu      sync.Mutex
	reading goruntime.Reading
	pending goruntime.Pending
	begun   int64 // marks
	swept   int64
	paid    time.Duration // processor time of cycles so far
	marking bool
	wrong   string // what the collector must not do
	closed  bool
	ended   func()

	// Of the next cycles. A test sets these while no cycle begins or ends.
	length   time.Duration // of a mark
	work     time.Duration // processor time of a cycle
	busy     bool          // no processor is spare
	sweeping bool          // sweeps do not end
	begins   func()        // called when a mark begins
}

func (e *fake) Now() time.Duration       { return time.Since(e.start) }
func (e *fake) Read() goruntime.Reading  { e.mu.Lock(); defer e.mu.Unlock(); return e.reading }
func (e *fake) Spare() bool              { e.mu.Lock(); defer e.mu.Unlock(); return !e.busy }
func (e *fake) Processor() time.Duration { e.mu.Lock(); defer e.mu.Unlock(); return e.paid }
func (e *fake) Pending() goruntime.Pending {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending.Marked, e.pending.Swept = e.begun, e.swept
	return e.pending
}
func (e *fake) Used() time.Duration      { return 0 }
func (e *fake) Watch(ended func())       { e.ended = ended }
func (e *fake) Close()                   { e.mu.Lock(); defer e.mu.Unlock(); e.closed = true }
func (e *fake) set(change func(e *fake)) { e.mu.Lock(); defer e.mu.Unlock(); change(e) }
func (e *fake) finalizers(queued, run uint64) {
	e.set(func(e *fake) { e.pending.Finalizers, e.pending.Finalized = queued, run })
}

func (e *fake) Mark() (swept time.Duration) {
	e.set(func(e *fake) {
		if e.marking || e.closed {
			e.wrong = "a second cycle at a time, or one after the end"
		}
		e.marking = true
		e.begun++
	})
	if e.begins != nil {
		e.begins()
	}
	runtime.GC()
	time.Sleep(e.length)
	e.set(func(e *fake) {
		e.marking = false
		e.paid += e.work
		e.reading.Cycles++
		if !e.sweeping {
			e.swept = e.begun
		}
	})
	return 0
}

// natural is a cycle that nobody asked for. If it is noticed, the collector is told at once.
func (e *fake) natural(noticed bool) {
	runtime.GC()
	e.set(func(e *fake) { e.reading.Cycles++ })
	if noticed {
		e.ended()
		synctest.Wait()
	}
}

// A world is a collector on a fake runtime, and what it logs.
type world struct {
	*testing.T
	c   *gc.Collector
	e   *fake
	log *events
}

// inBubble runs f with a collector on a fake runtime whose cycles take 10 ms. There is no check for quiet programs unless cfg has
// one. All that the test has begun has to end with f.
func inBubble(t *testing.T, cfg gc.Config, p policy.Policy, f func(*world)) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, e: &fake{start: time.Now(), length: 10 * ms}, log: &events{level: slog.LevelDebug}}
		if cfg.Idle == 0 {
			cfg.Idle = -1
		}
		if cfg.Log == nil {
			cfg.Log = slog.New(w.log)
		}
		w.c = gc.Build(w.e, cfg, p)
		f(w)
		time.Sleep(10 * time.Second) // releases are polled for a while
		if wrong := addsUp(w.c.Snapshot()); wrong != "" {
			t.Errorf("at rest: %s", wrong)
		}
		w.c.Close()
		time.Sleep(time.Second)
		if w.e.wrong != "" || !w.e.closed {
			t.Errorf("%s; the runtime is let go: %v", w.e.wrong, w.e.closed)
		}
	})
}

// uncapped lets the policy do as it likes: callers are held for whole cycles.
var uncapped = gc.Caps{Cycles: 1, Held: 1, Assist: -1}

// beside calls f on a goroutine of its own, and returns once that waits or is done.
func beside(f func()) {
	go f()
	synctest.Wait()
}

// sleep lets time go by, and what is due by then happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// takes returns the time that f takes.
func (w *world) takes(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func (w *world) collect() policy.Cycle { return w.c.Collect(policy.TriggerExplicit) }

// ownDead owns memory whose owner nobody keeps.
//
//go:noinline
func ownDead(c *gc.Collector, bytes int64) { own(c, new(boxed), bytes, func() {}) }

// own owns with a release that takes nothing.
func own[T any](c *gc.Collector, owner *T, bytes int64, release func()) gc.Handle {
	return gc.Own(c, owner, bytes, func(f func()) { f() }, release)
}

// total is how many cycles there were.
func total(c *gc.Collector) uint64 { s := c.Stats(); return sum(s.Cycles[:]) }

func sum(all []uint64) (n uint64) {
	for _, k := range all {
		n += k
	}
	return n
}

// live is what is counted in a collector's only source.
func live(c *gc.Collector) int64 { return c.Snapshot().Sources[0].Live }

// addsUp says what does not, of what a collector at rest shows.
func addsUp(s gc.Snapshot) string {
	var reasons, worked, repeats uint64
	for _, n := range s.Reasons {
		reasons += n
	}
	for _, d := range s.Decisions {
		repeats += uint64(d.Repeats)
	}
	cycles, decisions, pauses := sum(s.Stats.Cycles[:]), sum(s.Stats.Decisions[:]), sum(s.Stats.Pauses[:])
	work, _ := s.Last(s.Now)
	for _, n := range work.Cycles {
		worked += uint64(n)
	}
	young := s.Now < 4*time.Minute // the timeline has all
	switch x := &s.Stats; {
	case s.Running || x.Pending > 0:
		return "a cycle runs, or releases have not ended"
	case decisions != reasons || len(s.Decisions) < 64 && repeats != decisions:
		return "decisions are not counted by reason, or are not all listed"
	case uint64(len(s.Cycles)) != min(cycles, 64) || cycles > 0 && s.Cycles[len(s.Cycles)-1] != x.Last:
		return "cycles are not listed as they are counted"
	case young && (worked != cycles || work.Exposed != x.Exposed || work.MaxPause != x.MaxPause),
		young && (work.Busy != x.Busy || work.Processor != x.Processor || work.Freed > x.Freed):
		return "the timeline does not sum up to the counts"
	case x.Exposed < x.MaxPause || x.Exposed > time.Duration(pauses)*x.MaxPause:
		return "pauses do not add up"
	}
	for _, of := range s.Sources {
		for i, l := range of.Levels {
			if l.Least > min(l.First, l.Last) || l.Most < max(l.First, l.Last) || l.Start > s.Now || i > 0 && l.Start < of.Levels[i-1].Start+s.Step {
				return "a level of the timeline is outside of its least and its most, or out of order"
			}
		}
	}
	return ""
}

// A store is a pool of a program: its owners' memory is given back by cycles.
type store struct {
	mu        sync.Mutex
	at        pressure.Sample
	allocated int64
	gate      *gc.Gate
	owners    *gc.WeakRegistry[int64]
}

func newStore(c *gc.Collector, at pressure.Sample) *store {
	s := &store{at: at, allocated: at.Live}
	s.gate = c.NewGate(s)
	s.owners = gc.NewWeakRegistry(s.gate, 0, func(_ gc.Slot, w, bytes int64) { s.add(-bytes) })
	return s
}

func (s *store) Sample() pressure.Sample { s.mu.Lock(); defer s.mu.Unlock(); return s.at }
func (s *store) Allocated() int64        { s.mu.Lock(); defer s.mu.Unlock(); return s.allocated }
func (s *store) set(at pressure.Sample)  { s.mu.Lock(); defer s.mu.Unlock(); s.at = at }

func (s *store) add(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at.Live += bytes
	s.allocated += max(0, bytes)
}

// dead hands out n objects of some bytes each, which nobody keeps.
//
//go:noinline
func (s *store) dead(n int, bytes int64) {
	for range n {
		s.add(bytes)
		gc.Track(s.owners, new(boxed), bytes, bytes)
	}
}

// alloc asks the collector as a pool does.
func (s *store) alloc(request int64) { s.gate.Allocating(s.Sample().Live, request) }

// scripted is a policy that answers as a test says, and keeps the points that it was shown.
type scripted struct {
	decide func(policy.Point) policy.Decision // nil: skip
	mu     sync.Mutex
	points []policy.Point
}

func always(d policy.Decision) *scripted {
	return &scripted{decide: func(policy.Point) policy.Decision { return d }}
}

func (p *scripted) Decide(at policy.Point) policy.Decision {
	p.mu.Lock()
	p.points = append(p.points, at)
	p.mu.Unlock()
	if p.decide == nil {
		return policy.Decision{}
	}
	return p.decide(at)
}

func (p *scripted) Observe(policy.Cycle)  {}
func (p *scripted) String() string        { return "scripted" }
func (p *scripted) shown() []policy.Point { p.mu.Lock(); defer p.mu.Unlock(); return p.points }

// never returns a fresh policy that asks for nothing.
func never() policy.Policy { return policy.Spec{}.New() }

// An events handler keeps what it is told.
type events struct {
	mu    sync.Mutex
	level slog.Level // the least that it takes
	all   []event
}

type event struct {
	text  string
	level slog.Level
	attrs map[string]any
}

func (h *events) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }
func (h *events) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h *events) WithGroup(string) slog.Handler                { return h }

func (h *events) Handle(_ context.Context, r slog.Record) error {
	e := event{r.Message, r.Level, make(map[string]any)}
	r.Attrs(func(a slog.Attr) bool {
		e.attrs[a.Key] = a.Value.Any()
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
	return nil
}

// of returns the events whose text has such words and, if trigger is not "", of one trigger.
func (h *events) of(words, trigger string) (all []event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all {
		if strings.Contains(e.text, words) && (trigger == "" || e.attrs["trigger"] == trigger) {
			all = append(all, e)
		}
	}
	return all
}

// has reports whether every one of want is an attribute.
func (e event) has(want map[string]any) bool {
	for k, v := range want {
		if e.attrs[k] != v {
			return false
		}
	}
	return true
}
