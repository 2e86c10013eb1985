package gc

import (
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
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

func (e *puppet) marked() int64 { return 0 }
func (e *puppet) swept() int64  { return 0 }
func (e *puppet) spare() bool   { return !e.busy }
func (e *puppet) processor() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.spent + e.each*time.Duration(e.state.cycles)
}

func (e *puppet) watch(ended func()) { e.ended = ended }
func (e *puppet) close()             { e.closed = true }

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
