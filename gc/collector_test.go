package gc

import (
	"errors"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // failures are what many tests are about
	log.SetOutput(os.Stderr)                       // which that has changed
	processors := runtime.GOMAXPROCS(0)
	code := m.Run()
	if n := runtime.GOMAXPROCS(0); n != processors && code == 0 {
		os.Stderr.WriteString("the number of processors was changed\n")
		code = 1
	}
	exit(code)
}

// waitFor polls cond: the runtime's own cycles are noticed by other goroutines.
func waitFor(t *testing.T, d time.Duration, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("condition not met within %v", d)
		}
	}
}

func newCollector(t testing.TB, cfg Config) *Collector {
	t.Helper()
	if cfg.Caps == (Caps{}) {
		cfg.Caps = uncapped
	}
	if cfg.Idle == 0 {
		cfg.Idle = -1
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	patient(c)
	t.Cleanup(func() { atRest(t, c); c.Close() })
	return c
}

// patient has cycles wait for their releases for a minute: on a slow machine, too, all that a
// cycle frees is its yield then.
func patient(c *Collector) {
	c.releases.patience = int(time.Minute / releasePoll)
	c.releases.bound = c.releases.patience
}

// uncapped lets the policy do as it likes.
var uncapped = Caps{Cycles: 1, Held: 1, Assist: -1}

// ownFunc owns with a release that takes nothing.
func ownFunc[T any](c *Collector, owner *T, bytes int64, release func()) Handle {
	return Own(c, owner, bytes, func(f func()) { f() }, release)
}

// quiet keeps the runtime from collecting by itself during a test that counts
// cycles, or how often a policy is asked.
func quiet(t *testing.T) {
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	runtime.GC() // one that was under way has ended now
}

// A thing is an owner of outside memory.
type thing struct {
	_      *thing
	handle Handle
	bytes  int64
}

// scripted is a policy that answers what it is told to.
type scripted struct {
	decide  func(policy.Point) policy.Decision
	observe func(policy.Cycle)
}

func (p *scripted) Decide(at policy.Point) policy.Decision {
	if p.decide == nil {
		return policy.Decision{}
	}
	return p.decide(at)
}

func (p *scripted) Observe(c policy.Cycle) {
	if p.observe != nil {
		p.observe(c)
	}
}

func (p *scripted) String() string { return "scripted" }

// A crowd is a program of many goroutines that own memory, and its model.
type crowd struct {
	c       *Collector
	live    atomic.Int64 // of the model: owned and not dropped
	given   atomic.Int64
	twice   atomic.Int64
	reached atomic.Int64 // given back while reachable
	barrier sync.RWMutex
}

type state struct{ dropped, given atomic.Bool }

func (w *crowd) own(bytes int64) (*thing, *state) {
	s := new(state)
	o := &thing{bytes: bytes}
	o.handle = ownFunc(w.c, o, bytes, func() {
		if !s.dropped.Load() {
			w.reached.Add(1)
		}
		if s.given.Swap(true) {
			w.twice.Add(1)
		}
		w.given.Add(bytes)
	})
	w.live.Add(bytes)
	return o, s
}

func steps(t *testing.T) int {
	if text := os.Getenv("EAGERGC_TEST_STEPS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 40_000
}

// TestSettledYieldIsExact allocates, drops, frees and collects at random on 8
// goroutines; after every settled cycle with the others at rest, the bytes
// that the collector counts are those of the model.
// EAGERGC_TEST_STEPS=1000000 makes it long.
func TestSettledYieldIsExact(t *testing.T) {
	const goroutines, slots = 8, 200
	w := &crowd{c: newCollector(t, Config{Policy: policy.MustParse("cudajl").New(), Limit: 1 << 30})}
	ownFunc(w.c, new(thing), 0, func() {}).Release()
	settled := w.c.own().live.Load
	perGoroutine := steps(t) / goroutines
	var all sync.WaitGroup
	for n := range goroutines {
		beside(&all, func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			things, states := make([]*thing, slots), make([]*state, slots)
			w.barrier.RLock()
			defer w.barrier.RUnlock()
			for range perGoroutine {
				i := rng.IntN(slots)
				o, s := things[i], states[i]
				switch {
				case o == nil:
					things[i], states[i] = w.own(1 + rng.Int64N(1<<21))
				case rng.IntN(2) == 0:
					w.live.Add(-o.bytes)
					s.dropped.Store(true)
					if !o.handle.Release() || o.handle.Release() {
						t.Error("Release is not exactly once")
					}
					things[i], states[i] = nil, nil
				default:
					w.live.Add(-o.bytes)
					s.dropped.Store(true)
					things[i], states[i] = nil, nil
					runtime.KeepAlive(o)
				}
				o, s = nil, nil
				if rng.IntN(500) == 0 {
					w.barrier.RUnlock()
					w.check(t, settled)
					w.barrier.RLock()
				}
			}
			for i, o := range things {
				if o != nil {
					w.live.Add(-o.bytes)
					states[i].dropped.Store(true)
				}
			}
			clear(things)
		})
	}
	all.Wait()
	w.check(t, settled)
	if got := w.live.Load(); got != 0 {
		t.Errorf("model ends with %d live bytes", got)
	}
	if w.twice.Load() != 0 || w.reached.Load() != 0 {
		t.Errorf("given back twice: %d, while reachable: %d", w.twice.Load(), w.reached.Load())
	}
	if err := w.c.Err(); err != nil {
		t.Error(err)
	}
}

// check collects with everyone at rest and compares.
func (w *crowd) check(t *testing.T, settled func() int64) {
	w.barrier.Lock()
	defer w.barrier.Unlock()
	w.c.Collect(policy.TriggerExplicit)
	if got, want := settled(), w.live.Load(); got != want {
		t.Errorf("after a settled cycle: live = %d, model = %d", got, want)
	}
}

func TestOwnIsGivenBackByACycle(t *testing.T) {
	quiet(t)
	var cycles []policy.Cycle
	c := newCollector(t, Config{Policy: &scripted{observe: func(c policy.Cycle) { cycles = append(cycles, c) }}, Limit: 1000})
	var released int
	kept := new(thing)
	handle := ownFunc(c, kept, 10, func() { released = -1000 })
	for range 100 { // young ones and old ones
		ownFunc(c, new(thing), 7, func() { released++ })
	}
	got := c.Collect(policy.TriggerExplicit)
	if released != 100 || got.Freed != 700 || got.LiveAfter != 10 || got.Limit != 1000 || got.Trigger != policy.TriggerExplicit {
		t.Errorf("released %d, cycle %+v", released, got)
	}
	if got.Duration <= 0 || got.Exposed < 0 || got.Exposed > got.Duration { // it is 0 if the cycle is over before the caller has to wait
		t.Errorf("cycle took %v, exposed %v", got.Duration, got.Exposed)
	}
	if len(cycles) != 1 || cycles[0] != got {
		t.Errorf("policy observed %+v", cycles)
	}
	handle.Release() // or the runtime's next cycle would, after Close
	runtime.KeepAlive(kept)
}

func TestNaturalCyclesAreNoticed(t *testing.T) {
	var mu sync.Mutex
	var natural int
	var freed int64
	c := newCollector(t, Config{Policy: &scripted{observe: func(c policy.Cycle) {
		mu.Lock()
		defer mu.Unlock()
		if c.Trigger == policy.TriggerNatural {
			natural++
			freed += c.Freed
		}
	}}})
	for range 100 {
		ownFunc(c, new(thing), 7, func() {})
	}
	waitFor(t, 30*time.Second, func() bool {
		runtime.GC()
		mu.Lock()
		defer mu.Unlock()
		return natural > 0 && freed == 700
	})
}

func TestPanicsAreContained(t *testing.T) {
	quiet(t)
	c := newCollector(t, Config{Policy: &scripted{decide: func(policy.Point) policy.Decision { panic("policy bug") }}})
	released := 0
	for i := range 10 {
		ownFunc(c, new(thing), 1, func() {
			if released++; i == 5 {
				panic("release bug")
			}
		})
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "policy bug") {
		t.Errorf("Err() = %v", err)
	}
	if got := c.Collect(policy.TriggerExplicit); released != 10 || got.Freed != 10 {
		t.Errorf("released %d, %+v", released, got)
	}
	if got := c.Stats().Failures; got != 2 {
		t.Errorf("%d failures", got)
	}
	if got := c.Policy(); got != "never" {
		t.Errorf("policy after its panic: %s", got)
	}
}

func TestSyncHidesTheCycleBehindTheWait(t *testing.T) {
	quiet(t)
	var at policy.Point
	c := newCollector(t, Config{Policy: &scripted{decide: func(p policy.Point) policy.Decision {
		if p.At != policy.Sync {
			return policy.Decision{}
		}
		at = p
		return policy.Decision{Action: policy.Block}
	}}})
	ownFunc(c, new(thing), 7, func() {})
	place := &WaitPlace{Name: "step"}
	bad := errors.New("device lost")
	for range 2 {
		err := c.Sync(place, func() error {
			waitFor(t, 30*time.Second, func() bool { return !c.running() })
			time.Sleep(time.Millisecond)
			return bad
		})
		if err != bad {
			t.Errorf("Sync returned %v", err)
		}
	}
	if got := c.Stats(); got.Last.Exposed != 0 || got.Exposed != 0 || got.Cycles[policy.TriggerPolicy] != 2 || got.Freed != 7 {
		t.Errorf("%+v", got)
	}
	if !at.WillBlock || at.Wait < time.Millisecond || at.Cycles < 1 || place.Expected() < time.Millisecond {
		t.Errorf("point %+v, place expects %v", at, place.Expected())
	}
}

func TestSyncHoldsForWhatOutlastsTheWait(t *testing.T) {
	c, e, g := staged(t, &scripted{decide: func(p policy.Point) policy.Decision { return policy.Decision{Action: policy.Block} }})
	g.dead = 7
	go func() {
		end := <-e.marks
		awaitHeld(c)
		e.pass(2 * ms)
		end <- 0
	}()
	wait := func() error { e.pass(ms); return nil }
	if err := c.Sync(nil, wait); err != nil {
		t.Error(err)
	}
	if got := c.Stats(); got.Freed != 7 || got.Exposed != 2*ms || got.Last.Exposed != 2*ms || got.Last.Duration != 3*ms {
		t.Errorf("%+v", got)
	}
}

func TestWakeHoldsUntilReachedOrACycleEnds(t *testing.T) {
	quiet(t)
	asked := 0
	c := newCollector(t, Config{Policy: &scripted{decide: func(policy.Point) policy.Decision { asked++; return policy.Decision{Wake: 100} }}})
	var keep []*thing
	own := func(bytes int64) {
		keep = append(keep, new(thing))
		ownFunc(c, keep[len(keep)-1], bytes, func() {})
	}
	for i, want := range []int{1, 1, 1, 2} { // live + request: 30, 60, 90, 120
		if own(30); asked != want {
			t.Errorf("after allocation %d: asked %d times, want %d", i, asked, want)
		}
	}
	c.SetPolicy(&scripted{decide: func(policy.Point) policy.Decision { asked++; return policy.Decision{Wake: 1000} }})
	own(1)
	own(1)
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
	c.Collect(policy.TriggerExplicit)
	own(1)
	if asked != 4 {
		t.Errorf("asked %d times after a cycle, want 4", asked)
	}
	runtime.KeepAlive(keep)
}

func TestOverlappedCycleDoesNotHoldAndCollectFindsWhatWasDroppedBefore(t *testing.T) {
	quiet(t)
	c := newCollector(t, Config{Policy: &scripted{decide: func(p policy.Point) policy.Decision { return policy.Decision{Action: policy.Overlap} }}})
	var freed atomic.Int64
	for range 200 {
		ownFunc(c, new(thing), 1, func() { freed.Add(1) }) // each starts a cycle or finds one running
	}
	c.SetPolicy(nil)
	c.Collect(policy.TriggerExplicit)
	if got := freed.Load(); got != 200 {
		t.Errorf("%d of 200 dead objects given back", got)
	}
	if c.Wait() {
		t.Error("a cycle is under way")
	}
}

func TestCloseInFlightLeavesNoGoroutine(t *testing.T) {
	for range 20 {
		c, err := New(Config{Caps: uncapped, Policy: &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: policy.Overlap} }}})
		if err != nil {
			t.Fatal(err)
		}
		h := ownFunc(c, new(thing), 1, func() {})
		c.Close()
		c.Close()
		h.Release()
		if got := c.Collect(policy.TriggerExplicit); got != (policy.Cycle{}) {
			t.Errorf("Collect after Close: %+v", got)
		}
		ownFunc(c, new(thing), 1, func() {}).Release()
		if err := c.Sync(nil, func() error { return nil }); err != nil {
			t.Error(err)
		}
	}
	if left := leaked(); left != "" {
		t.Error(left)
	}
}

func TestEnvironmentChoosesThePolicy(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "threshold:0.5"}, {"none", "never"}, {" threshold:0.8", "threshold:0.8"}, {"treshold", "threshold:0.5"},
	} {
		t.Setenv(PolicyVariable, tc.text)
		c, err := New(Config{Policy: policy.MustParse("threshold:0.5").New()})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Policy(); got != tc.want {
			t.Errorf("%q: policy %s, want %s", tc.text, got, tc.want)
		}
		c.Close()
	}
}

func TestDueAsksWithoutActing(t *testing.T) {
	c := newCollector(t, Config{Policy: &scripted{decide: func(p policy.Point) policy.Decision { return policy.Decision{Action: policy.Block} }}})
	if c.Due() {
		t.Error("due with nothing to watch")
	}
	c.own()
	if !c.Due() || c.running() {
		t.Error("not due, or running")
	}
}

func TestOwnAboveItsLimitWaitsForCyclesButNotForEver(t *testing.T) {
	quiet(t)
	c := newCollector(t, Config{Policy: policy.Spec{}.New(), Limit: 100})
	for range 1000 {
		ownFunc(c, new(thing), 10, func() {})
		if live := c.own().live.Load(); live > 100 {
			t.Fatalf("%d live bytes with all of them dead", live)
		}
	}
	var keep []*thing
	for range 100 { // reachable: cycles are of no use
		keep = append(keep, new(thing))
		ownFunc(c, keep[len(keep)-1], 10, func() {})
	}
	// 1000 dead make about a hundred cycles; 900 bytes above the limit, in
	// steps of an eighth of it, make some 70 more.
	if n := c.Stats().Cycles[policy.TriggerRefusal]; n < 90 || n > 190 {
		t.Errorf("%d cycles", n)
	}
	runtime.KeepAlive(keep)
}

// TestCollectBeginsAfterTheCall calls Collect when the mark of a cycle under way
// has ended: that cycle cannot have found what was dropped since.
func TestCollectBeginsAfterTheCall(t *testing.T) {
	quiet(t)
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	walking, proceed := make(chan struct{}), make(chan struct{})
	ownFunc(c, new(thing), 1, func() { close(walking); <-proceed })
	c.mu.Lock()
	c.obey(policy.Decision{Action: policy.Overlap}, c.own().gate, c.Now())
	c.mu.Unlock()
	<-walking
	freed := false
	ownFunc(c, new(thing), 1, func() { freed = true })
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Collect(policy.TriggerExplicit)
	}()
	waitFor(t, 30*time.Second, func() bool { // until Collect waits for the cycle under way
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.current.Load().held != noOne
	})
	close(proceed)
	<-done
	if !freed {
		t.Error("Collect returned with the cycle that had begun before it")
	}
}

// TestCollectBesideCyclesOfOthers has other goroutines run cycles all the time:
// one that was under way when Collect was called is not taken for its own.
func TestCollectBesideCyclesOfOthers(t *testing.T) {
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	heap := tree(15)
	var stop atomic.Bool
	var other sync.WaitGroup
	beside(&other, func() {
		for !stop.Load() {
			runtime.GC()
		}
	})
	for range 50 {
		for range 30 {
			ownFunc(c, new(thing), 1, func() {})
		}
		c.Collect(policy.TriggerExplicit)
		if live := c.own().live.Load(); live != 0 {
			t.Fatalf("%d dropped objects not found", live)
		}
	}
	stop.Store(true)
	other.Wait()
	runtime.KeepAlive(heap)
}
