package gc

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A puppet is an engine without a runtime: a test moves its clock, ends its
// marks and makes its cycles.
type puppet struct {
	mu     sync.Mutex
	at     time.Duration
	state  reading
	reads  int
	ended  func()
	marks  chan chan time.Duration // one for each call of mark: what is sent to it has been sweep
	closed bool
	each   time.Duration // processor time of a cycle
	paid   time.Duration // what is added to that by the next marks
	spent  time.Duration // the sum of those
	busy   bool          // all processors are
	seen   marking       // of each mark

	begun, sweeps atomic.Int64 // marks that the engine counts, and sweeps that have ended
}

func newPuppet() *puppet { return &puppet{marks: make(chan chan time.Duration)} }

func (e *puppet) now() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

// pass lets time go by.
func (e *puppet) pass(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at += d
}

func (e *puppet) read() reading {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reads++
	return e.state
}

func (e *puppet) mark() marking {
	end := make(chan time.Duration)
	e.marks <- end
	m := e.seen
	m.swept = <-end
	e.cycle()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spent += e.paid
	return m
}

// cycle counts a cycle of the process, and tells nobody.
func (e *puppet) cycle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.cycles++
}

func (e *puppet) marked() int64 { return e.begun.Load() }
func (e *puppet) swept() int64  { return e.sweeps.Load() }
func (e *puppet) spare() bool   { return !e.busy }
func (e *puppet) processor() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.spent + e.each*time.Duration(e.state.cycles)
}

func (e *puppet) watch(ended func()) { e.ended = ended }
func (e *puppet) close()             { e.closed = true }

// newOn makes a collector on a puppet, which has no allocator to trim.
func newOn(e engine, cfg Config, p policy.Policy) *Collector { return build(e, new(trimmer), cfg, p) }

// A graveyard is a registry whose dead a test puts in.
type graveyard struct {
	level
	gate     *Gate
	dead     int // objects of one byte
	promoted int
	walks    int
}

func (g *graveyard) promoteAll() { g.promoted++ }
func (g *graveyard) Len() int    { return 0 }

func (g *graveyard) walk(r *collection) {
	g.walks++
	if g.dead > 0 {
		r.found(&batch{gate: g.gate, dead: g, n: g.dead})
	}
	g.dead = 0
}

func (g *graveyard) bytes(int) int64 { return 1 }
func (g *graveyard) give(int)        { g.at.Live-- }

// staged is a collector on a puppet, and the memory that it watches.
func staged(t *testing.T, p policy.Policy) (*Collector, *puppet, *graveyard) {
	e := newPuppet()
	c := newOn(e, Config{Caps: uncapped}, p)
	patient(c)
	g := &graveyard{level: level{pressure.Sample{Live: 100, Limit: 1000}}}
	g.gate = c.NewGate(g)
	c.addRegistry(g)
	t.Cleanup(func() {
		atRest(t, c)
		c.Close()
		if !e.closed {
			t.Error("the collector has not closed its engine")
		}
	})
	return c, e, g
}

func TestACycleIsTimedByTheEngine(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	g.dead = 40
	e.pass(10 * ms)
	got := make(chan policy.Cycle)
	go func() { got <- c.Collect(policy.TriggerExplicit) }()
	end := <-e.marks
	awaitHeld(c)
	e.pass(20 * ms)
	end <- 5 * ms
	want := policy.Cycle{Start: 10 * ms, Duration: 20 * ms, Exposed: 20 * ms, Trigger: policy.TriggerExplicit, Action: policy.Block, Freed: 40, LiveAfter: 60, Limit: 1000}
	if cycle := <-got; cycle != want {
		t.Errorf("got  %+v\nwant %+v", cycle, want)
	}
	if s := c.Stats(); s.Cost < 14*ms || s.Cost > 15*ms || s.Exposed != 20*ms || s.Objects != 40 {
		t.Errorf("expects the next cycle to take %v, want 15ms, that is without the sweep and a little less with fewer objects; %+v", s.Cost, s)
	}
	if g.promoted != 1 || g.walks != 1 {
		t.Errorf("promoted %d times, walked %d times", g.promoted, g.walks)
	}
}

// TestACycleHoldsFromItsFirstCallerOn: who comes later is held for a shorter time, and does not make the cycle's pause shorter.
func TestACycleHoldsFromItsFirstCallerOn(t *testing.T) {
	c, e, _ := staged(t, policy.Spec{}.New())
	got := make(chan policy.Cycle)
	go func() { got <- c.Collect(policy.TriggerExplicit) }()
	end := <-e.marks
	awaitHeld(c)
	e.pass(10 * ms)
	var later sync.WaitGroup
	for range 4 {
		beside(&later, func() { c.Wait() })
	}
	time.Sleep(5 * time.Millisecond) // they may come after the cycle, too
	e.pass(20 * ms)
	end <- 0
	if cycle := <-got; cycle.Exposed != 30*ms {
		t.Errorf("exposed for %v, want 30ms", cycle.Exposed)
	}
	later.Wait()
}

// TestCallersShareTheNextCycle: whoever asks while a cycle is under way waits
// for one that begins after that, and all wait for the same.
func TestCallersShareTheNextCycle(t *testing.T) {
	c, e, g := staged(t, &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: policy.Overlap} }})
	g.gate.Allocating(100, 1)
	first := <-e.marks // the caller was not held
	var done sync.WaitGroup
	for range 8 {
		beside(&done, func() { c.Collect(policy.TriggerExplicit) })
	}
	waitFor(t, 30*time.Second, func() bool { // until one waits
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.current.Load().held != noOne
	})
	first <- 0
	// Those that call only now have a cycle of their own, which is why there may
	// be more than two.
	served := make(chan bool)
	go func() { done.Wait(); close(served) }()
	for marks := 1; ; {
		select {
		case end := <-e.marks:
			marks++
			end <- 0
			continue
		case <-served:
		}
		if marks < 2 || marks > 9 {
			t.Errorf("%d cycles", marks)
		}
		return
	}
}

func TestNaturalCyclesAreSettledOnce(t *testing.T) {
	var seen []policy.Cycle
	c, e, g := staged(t, &scripted{observe: func(c policy.Cycle) { seen = append(seen, c) }})
	e.pass(50 * ms)
	natural := func() uint64 { return c.Stats().Cycles[policy.TriggerNatural] }

	g.dead = 10
	e.cycle()
	e.ended() // the engine has noticed
	waitFor(t, 30*time.Second, func() bool { return natural() == 1 })

	g.dead = 20
	e.cycle()
	g.gate.Allocating(100, 1) // a point notices, within a millisecond of the last reading not
	if c.Reap(); natural() != 2 {
		t.Errorf("%d natural cycles, want 2", natural())
	}
	if c.Reap() != 0 || natural() != 2 {
		t.Error("a cycle is settled twice")
	}
	for i, want := range []policy.Cycle{
		{Start: 50*ms - 300*time.Microsecond, Trigger: policy.TriggerNatural, Action: policy.Overlap, Freed: 10, LiveAfter: 90, Limit: 1000},
		{Start: 50*ms - 300*time.Microsecond, Trigger: policy.TriggerNatural, Action: policy.Overlap, Freed: 20, LiveAfter: 70, Limit: 1000},
	} {
		got := seen[i]
		if got.Start+got.Duration != 50*ms {
			t.Errorf("cycle %d ends at %v, want 50ms", i, got.Start+got.Duration)
		}
		if got.Start, got.Duration, got.Work = want.Start, want.Duration, want.Work; got != want {
			t.Errorf("cycle %d: got %+v, want %+v", i, got, want)
		}
	}
	if c.Stats().Busy != 0 {
		t.Errorf("%v busy with cycles that nobody has timed", c.Stats().Busy)
	}
}

// TestPointsReadTheRuntimeOnceAMillisecond: a reading is most of what a point costs.
func TestPointsReadTheRuntimeOnceAMillisecond(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	c.SetPolicy(&scripted{})
	before := e.reads
	for range 100 {
		e.pass(ms / 10)
		g.gate.Allocating(100, 1)
		c.goroutine.Wait() // nothing is to be settled
	}
	if n := e.reads - before; n != 10 {
		t.Errorf("%d readings in 10 ms, want 10", n)
	}
}

// TestLiveBytesOfBeforeACycleAreNotShown: a caller read how much is live, and then
// waited while a cycle settled.
func TestLiveBytesOfBeforeACycleAreNotShown(t *testing.T) {
	var seen []int64
	c, e, g := staged(t, &scripted{decide: func(p policy.Point) policy.Decision {
		seen = append(seen, p.Sample.Live)
		return policy.Decision{}
	}})
	settled, live := c.settled.Load(), g.at.Live
	c.askAt(g.gate, policy.Point{At: policy.Allocation}, live, settled)
	g.dead = 40
	go func() { (<-e.marks) <- 0 }()
	c.Collect(policy.TriggerExplicit)
	c.askAt(g.gate, policy.Point{At: policy.Allocation}, live, settled)
	if len(seen) != 2 || seen[0] != 100 || seen[1] != 60 {
		t.Errorf("the policy was shown %d live bytes, want 100 and then 60", seen)
	}
}

// TestWhatOthersFreeIsWaitedFor until the sweep has ended and nothing is due, but not for ever, and not where nothing is counted; the wait is
// no cost of the cycle.
func TestWhatOthersFreeIsWaitedFor(t *testing.T) {
	c, e, _ := staged(t, policy.Spec{}.New())
	o := c.own()
	walk := func() *collection {
		r := c.newCollection(policy.TriggerExplicit, policy.Decision{}, o.gate)
		(*accountWalk)(o).walk(r)
		r.releases.close(r)
		return r
	}
	l := new(library)
	l.o, o.libraries = o, []*library{l}
	l.read = func() (int64, int64) { return 0, 0 }
	l.given.Store(4)
	o.accounted.given.Store(3)
	if (*accountWalk)(o).promoteAll(); l.before.Load() != 4 || o.accounted.before.Load() != 3 {
		t.Error("what was given back before a mark is taken for its yield")
	}
	e.begun.Store(1) // and is sweeping
	if r := walk(); r.waited != 0 {
		t.Errorf("waits for %v, where nothing is counted", r.waited)
	}
	c.Account(10)
	if r := walk(); r.waited < settleBound {
		t.Errorf("waits for %v while the sweep goes on", r.waited)
	}
	if c.cleaned(1) || !c.cleaned(0) && !readPending().waiting() {
		t.Error("a sweep that goes on is taken for one that has ended, or the other way round")
	}
	e.sweeps.Store(1)
	waitFor(t, 20*time.Second, func() bool { r := walk(); return r.waited > 0 && r.waited < settleBound })
	c.Account(-10)
	r := c.newCollection(policy.TriggerExplicit, policy.Decision{}, o.gate)
	for _, ends := range []int{1, 3} {
		calls, was := 0, r.waited
		r.await(time.Hour, func() bool { calls++; return calls == ends })
		if calls != ends || r.waited <= was {
			t.Errorf("asked %d times of %d, and waited for %v", calls, ends, r.waited-was)
		}
	}
	r.await(0, func() bool { t.Error("asked, where there is no time"); return true })
}

// TestOneCycleAtATime: whoever asks beside one gets that; once it is closed nobody gets one, and it is recorded no more.
func TestOneCycleAtATime(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	to := &recording{}
	c.SetRecorder(worldClock{to, e})
	first := c.beginNow(policy.TriggerExplicit, 0)
	end := <-e.marks
	c.mu.Lock()
	again := c.obey(policy.Decision{Action: policy.Overlap}, g.gate, 0)
	nothing := c.obey(policy.Decision{}, g.gate, 0)
	c.mu.Unlock()
	if first == nil || first.expected != c.expected.Cost || c.beginNow(policy.TriggerRefusal, 0) != first || again != first || nothing != nil || c.Reap() != 0 || !c.running() {
		t.Error("a second cycle beside the first, or none")
	}
	closed := make(chan struct{})
	go func() { defer close(closed); c.Close() }()
	c.awaitClosed()
	g.dead = 5
	end <- 0
	<-closed
	if c.beginNow(policy.TriggerExplicit, 0) != nil || c.Collect(policy.TriggerExplicit) != (policy.Cycle{}) || c.Wait() || len(to.Events) > 0 {
		t.Errorf("after Close: recorded %+v", to.Events)
	}
	if s := c.Stats(); s.Cycles[policy.TriggerExplicit] != 1 || s.Freed != 5 || s.Last.Freed != 5 || s.Last.Start != 0 {
		t.Errorf("%+v", s)
	}
}

// TestACollectorThatWatchesNothing runs cycles, records and logs them, and asks nobody.
func TestACollectorThatWatchesNothing(t *testing.T) {
	e, to, log := newPuppet(), &recording{}, &events{level: slog.LevelDebug}
	asked := 0
	c := newOn(e, Config{Caps: usualCaps(), Idle: -1, Recorder: worldClock{to, e}, Log: slog.New(log)}, &scripted{decide: func(policy.Point) policy.Decision { asked++; return policy.Decision{} }})
	go func() { (<-e.marks) <- 0 }()
	cycle := c.Collect(policy.TriggerRefusal)
	c.Sync(&WaitPlace{Name: "x"}, func() error { return nil })
	e.cycle()
	c.Reap()
	if c.Due() || asked > 0 || cycle.Limit != 0 || cycle.LiveAfter != 0 || cycle.Trigger != policy.TriggerRefusal {
		t.Errorf("asked %d times; a cycle %+v", asked, cycle)
	}
	c.Close()
	kinds := map[trace.Kind]int{}
	for _, e := range to.Events {
		kinds[e.Kind]++
		if e.Space != pressure.Host {
			t.Errorf("recorded %+v", e)
		}
	}
	if kinds[trace.Cycle] != 2 || kinds[trace.Sync] != 1 || len(log.of(logBegan, "refusal")) != 1 || len(log.of(logEnded, "natural")) != 1 || len(log.of(logRefused, "")) != 1 {
		t.Errorf("recorded %v, logged %+v", kinds, log.all)
	}
	var g *Gate
	g.Allocating(1<<40, 1<<40)
	g.Refused(1 << 40)
	if g.isSoft() || g.gauge() != nil || g.attrs() != nil {
		t.Error("a nil gate is something")
	}
}

// TestAGateOfAClosedCollectorAsksNobody, and neither does one that was closed or changed.
func TestAGateOfAClosedCollectorAsksNobody(t *testing.T) {
	asked := 0
	c := newOn(newPuppet(), Config{Caps: uncapped, Idle: -1}, &scripted{decide: func(policy.Point) policy.Decision { asked++; return policy.Decision{} }})
	gone, stays := c.NewGate(new(level)), c.NewGate(new(level))
	c.unchosen = true
	c.NewGate(place{pressure.Device(0)}).Close()
	chosen := c.policy
	if c.NewGate(place{pressure.Device(0)}).Close(); c.policy != chosen || c.Policy() != policy.MustParse(DefaultPolicy).New().String() {
		t.Error("the policy that a device has chosen is replaced by the next one")
	}
	c.SetPolicy(&scripted{decide: func(policy.Point) policy.Decision { asked++; return policy.Decision{} }})
	gone.Close()
	gone.Allocating(1, 1)
	if asked > 0 || len(c.gates) != 1 {
		t.Errorf("a closed gate asks %d times", asked)
	}
	if stays.Allocating(1, 1); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	c.Close()
	stays.Changed()
	c.SetLimit(5)
	c.SetPolicy(c.policy)
	for i, g := range []*Gate{stays, c.NewGate(new(level)), c.own().gate} {
		if g.Allocating(1, 1); asked != 1 || g.wake.Load() != math.MaxInt64 {
			t.Errorf("after Close gate %d asks at %d bytes", i, g.wake.Load())
		}
	}
	if c.Due() {
		t.Error("due after Close")
	}
}

// TestCloseWaits for releases that are under way, and for what the log is being told.
func TestCloseWaits(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	slow := &slowLog{began: began, goOn: goOn}
	for what, begin := range map[string]func(*Collector){
		"a release": func(c *Collector) {
			g := c.NewGate(new(level))
			g.yield.Store(-1) // of the release, which no cycle takes back
			r := c.newCollection(policy.TriggerNatural, policy.Decision{}, g)
			r.found(&batch{gate: g, n: 1, dead: slow})
		},
		"the log": func(c *Collector) { go c.say(logEntry{level: slog.LevelError}) },
	} {
		e := newPuppet()
		c := newOn(e, Config{Idle: -1, Log: slog.New(slow)}, policy.Spec{}.New())
		patient(c)
		begin(c)
		<-began
		closed := make(chan struct{})
		go func() { defer close(closed); c.Close() }()
		c.awaitClosed()
		select {
		case <-closed:
			t.Errorf("Close does not wait for %s", what)
		case <-time.After(20 * ms):
		}
		goOn <- struct{}{}
		soon(t, 20*time.Second, "Close after "+what, func() { <-closed })
	}
}

// A slowLog is a handler and what a batch has, which end when a test says so.
type slowLog struct{ began, goOn chan struct{} }

func (s *slowLog) bytes(int) int64                              { return 1 }
func (s *slowLog) give(int)                                     { s.began <- struct{}{}; <-s.goOn }
func (s *slowLog) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelError }
func (s *slowLog) Handle(context.Context, slog.Record) error    { s.give(0); return nil }
func (s *slowLog) WithAttrs([]slog.Attr) slog.Handler           { return s }
func (s *slowLog) WithGroup(string) slog.Handler                { return s }
