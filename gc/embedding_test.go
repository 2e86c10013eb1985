package gc

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace"
)

// What embedding promises: see DESIGN, "the live collector". Each of these tests
// is a program that was seen to hang, to leak or to stand still.

func embed(t testing.TB, cfg Config) *Collector {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { atRest(t, c); c.Close() })
	return c
}

// soon fails the test if do takes longer than d.
func soon(t testing.TB, d time.Duration, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(d):
		stacks := make([]byte, 1<<16)
		t.Fatalf("%s: not done after %v\n%s", what, d, stacks[:runtime.Stack(stacks, true)])
	}
}

// TestAReleaseMayTakeALockThatACallerHolds: a cache with a mutex.
func TestAReleaseMayTakeALockThatACallerHolds(t *testing.T) {
	c := embed(t, Config{Limit: 100})
	var cache sync.Mutex
	var released atomic.Int64
	soon(t, time.Minute, "Own under a lock that releases take", func() {
		for range 100 {
			cache.Lock()
			ownFunc(c, new(thing), 60, func() {
				cache.Lock()
				defer cache.Unlock()
				released.Add(1)
			})
			c.Collect(policy.TriggerExplicit) // also that returns
			cache.Unlock()
			if released.Load() > 2 {
				return
			}
		}
	})
	waitFor(t, 20*time.Second, func() bool { return released.Load() > 0 })
}

// TestASlowReleaseHoldsNobody: releases wait for a network, say.
func TestASlowReleaseHoldsNobody(t *testing.T) {
	c := embed(t, Config{Limit: 100})
	stuck := make(chan struct{})
	defer close(stuck)
	began := make(chan struct{})
	ownFunc(c, new(thing), 1, func() { close(began); <-stuck })
	go c.Collect(policy.TriggerExplicit)
	<-began
	soon(t, 20*time.Second, "others beside a release that does not end", func() {
		for range 20 {
			ownFunc(c, new(thing), 60, func() {})
		}
		NewWeakRegistry(c.NewGate(new(level)), 0, func(Slot, int, int64) {}).Close()
		c.Collect(policy.TriggerRefusal)
		c.Reap()
	})
	waitFor(t, 20*time.Second, func() bool { return c.Stats().Pending == 1 }) // the one
}

// TestTheCollectorMayBeUsedFromARelease: each call works and ends.
func TestTheCollectorMayBeUsedFromARelease(t *testing.T) {
	for name, use := range map[string]func(*Collector){
		"own":     func(c *Collector) { ownFunc(c, new(thing), 60, func() {}) },
		"collect": func(c *Collector) { c.Collect(policy.TriggerExplicit) },
		"sync":    func(c *Collector) { c.Sync(nil, func() error { return nil }) },
		"account": func(c *Collector) { c.Account(10); c.Account(-10) },
		"close":   func(c *Collector) { c.Close() },
		"all": func(c *Collector) {
			c.Stats()
			c.SetPolicy(nil)
			c.SetLimit(50)
			c.Wait()
			c.Reap()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := embed(t, Config{Limit: 100})
			done := make(chan struct{})
			ownFunc(c, new(thing), 60, func() {
				defer close(done)
				use(c)
			})
			soon(t, 20*time.Second, name, func() {
				c.Collect(policy.TriggerExplicit)
				<-done
				c.Collect(policy.TriggerExplicit)
			})
		})
	}
}

// TestFailuresLeaveTheCollectorUsable: panics and runtime.Goexit in all code that
// is not the collector's.
func TestFailuresLeaveTheCollectorUsable(t *testing.T) {
	for name, cfg := range map[string]Config{
		"action out of range": {Policy: &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: 17} }}},
		"recorder":            {Recorder: brokenSink{}},
		"log":                 {Log: slog.New(brokenHandler{})},
		"goexit":              {},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Limit = 100
			c := embed(t, cfg)
			soon(t, 20*time.Second, name, func() {
				var released atomic.Int64
				for range 10 {
					ownFunc(c, new(thing), 1, func() {
						released.Add(1)
						if name == "goexit" {
							runtime.Goexit()
						}
					})
				}
				c.Sync(nil, func() error { return nil })
				c.Collect(policy.TriggerExplicit)
				waitFor(t, time.Minute, func() bool { return released.Load() == 10 })
				c.Collect(policy.TriggerExplicit)
			})
			if c.Err() == nil || c.Stats().Failures == 0 {
				t.Error("nobody is told")
			}
		})
	}
}

type brokenSink struct{}

func (brokenSink) Record(trace.Event)  { panic("the disk is full") }
func (brokenSink) Label(string) uint32 { return 0 }
func (brokenSink) Now() time.Duration  { return 0 }

type brokenHandler struct{}

func (brokenHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (brokenHandler) Handle(context.Context, slog.Record) error { panic("no log") }
func (h brokenHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h brokenHandler) WithGroup(string) slog.Handler           { return h }

// TestLargeOwnersDieWithTheRuntimesOwnCycles: one cycle that nobody asked for finds
// all of them, as it would with runtime.AddCleanup.
func TestLargeOwnersDieWithTheRuntimesOwnCycles(t *testing.T) {
	quiet(t)
	c := embed(t, Config{Policy: policy.Spec{}.New()})
	var released atomic.Int64
	for range 100 {
		ownFunc(c, new(thing), 1<<20, func() { released.Add(1) })
	}
	runtime.GC()
	waitFor(t, time.Minute, func() bool {
		c.Reap()
		return released.Load() == 100
	})
}

// TestAfterCloseMemoryIsStillReleased: `defer collector.Close()` in the function
// that loads one image.
func TestAfterCloseMemoryIsStillReleased(t *testing.T) {
	c := embed(t, Config{})
	var released atomic.Int64
	owner := new(thing)
	ownFunc(c, owner, 1<<20, func() { released.Add(1) })
	c.Close()
	ownFunc(c, new(thing), 1<<20, func() { released.Add(1) })
	runtime.KeepAlive(owner)
	owner = nil
	waitFor(t, 20*time.Second, func() bool {
		runtime.GC()
		return released.Load() == 2
	})
}

// TestAForgottenCollectorGoes: with what it tracks, without a goroutine left.
func TestAForgottenCollectorGoes(t *testing.T) {
	for _, idle := range []time.Duration{0, -1} { // with a timer that keeps it, and without
		t.Run(idle.String(), func(t *testing.T) { forgottenCollectorGoes(t, idle) })
	}
}

func forgottenCollectorGoes(t *testing.T, idle time.Duration) {
	gone := make(chan struct{})
	var released atomic.Bool
	before := runtime.NumGoroutine()
	func() {
		c, err := New(Config{Idle: idle})
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(c, func(done chan struct{}) { close(done) }, gone)
		ownFunc(c, new(thing), 1<<20, func() { released.Store(true) })
	}()
	waitFor(t, 20*time.Second, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
	if !released.Load() {
		t.Error("the collector went before what it tracked was released")
	}
	waitFor(t, 20*time.Second, func() bool { return runtime.NumGoroutine() <= before })
}

// TestAQuietProgramGetsOneCycle: garbage does not stay until more is allocated.
func TestAQuietProgramGetsOneCycle(t *testing.T) {
	quiet(t)
	c := embed(t, Config{Policy: policy.MustParse("pacer").New(), Limit: 1 << 40, Idle: 20 * time.Millisecond})
	var released atomic.Int64
	ownFunc(c, new(thing), 1<<20, func() { released.Add(1) })
	waitFor(t, 20*time.Second, func() bool { return released.Load() == 1 })
	waitFor(t, 20*time.Second, func() bool { return !c.awake.Load() })
	c.Wait() // that cycle is counted
	if n := c.Stats().Cycles[policy.TriggerExplicit]; n != 1 {
		t.Errorf("%d cycles for one quiet time", n)
	}
	kept := new(thing)
	ownFunc(c, kept, 1<<20, func() { released.Add(1) })
	waitFor(t, 20*time.Second, func() bool { return c.Stats().Cycles[policy.TriggerExplicit] == 2 })
	waitFor(t, 20*time.Second, func() bool { return !c.awake.Load() })
	if n := c.Stats().Cycles[policy.TriggerExplicit]; n != 2 {
		t.Errorf("%d cycles for two quiet times", n)
	}
	runtime.KeepAlive(kept)
}

// TestReachableAboveTheLimit: no policy runs a cycle for each call, and the
// collector says what is the matter.
func TestReachableAboveTheLimit(t *testing.T) {
	for _, rule := range []string{"pacer", "sqrt", "threshold:0.8", "cudajl", "v8step:soft=1%", "growth:1,min=1%", "dotnet:budget=0.4%", "never"} {
		t.Run(rule, func(t *testing.T) {
			h := &events{level: slog.LevelWarn}
			c := embed(t, Config{Policy: policy.MustParse(rule).New(), Limit: 100 << 20, Log: slog.New(h)})
			kept := make([]thing, 101)
			for i := range kept {
				ownFunc(c, &kept[i], 1<<20, func() {})
			}
			const calls = 5000
			before := c.Stats()
			for range calls {
				ownFunc(c, new(thing), 100<<10, func() {}).Release() // a little on top, given back by hand
			}
			if n := total(c.Stats().Cycles) - total(before.Cycles); n > calls/20 {
				t.Errorf("%d cycles in %d calls", n, calls)
			}
			c.Collect(policy.TriggerExplicit)
			if s := c.Stats(); !s.OverLimit || s.Over == 0 {
				t.Errorf("it is not known that the limit cannot be kept: %+v", s)
			}
			waitFor(t, 20*time.Second, func() bool { return len(h.of(logOver, "")) > 0 }) // after the cycle's end
			runtime.KeepAlive(kept)
		})
	}
}

func total(cycles [triggers]uint64) (n uint64) {
	for _, k := range cycles {
		n += k
	}
	return n
}

// TestTheFirstFailureIsLogged by slog.Default, where there is no other log.
func TestTheFirstFailureIsLogged(t *testing.T) {
	before := slog.Default()
	h := &events{level: slog.LevelError}
	slog.SetDefault(slog.New(h))
	defer slog.SetDefault(before)
	c := embed(t, Config{})
	for range 3 {
		ownFunc(c, new(thing), 1, func() { panic("a bug in a release") })
	}
	waitFor(t, 20*time.Second, func() bool {
		c.Collect(policy.TriggerExplicit)
		return c.Stats().Failures == 3
	})
	if got := h.of(logPanicked, ""); len(got) != 1 || !strings.Contains(got[0].attrs["error"].(error).Error(), "a bug in a release") {
		t.Errorf("logged %v", got)
	}
}

// TestSurvivorsAreNamed: an owner that its own release keeps alive, in a way that
// Own cannot see, and more of them. What only stays, as the weights of a model do, is told nobody.
func TestSurvivorsAreNamed(t *testing.T) {
	quiet(t)
	h := &events{level: slog.LevelWarn}
	c := embed(t, Config{Caps: uncapped, Log: slog.New(h)})
	type leak struct{ owner **thing }
	grow := func(n int) {
		for range n {
			o := new(thing)
			Own(c, o, 64<<20, func(leak) {}, leak{&o})
		}
		for range manyCycles + 1 {
			ownFunc(c, new(thing), 64<<20, func() {})
			c.Collect(policy.TriggerExplicit)
		}
	}
	checked := func(at time.Duration) {
		c.samples.mu.Lock()
		defer c.samples.mu.Unlock()
		c.samples.checked = at
	}
	check := func() { // as if the last check had been long ago
		checked(-survivorCheck)
		c.logSurvivors()
		checked(time.Hour) // the collector checks none by itself, however long it takes
	}
	checked(time.Hour)
	for _, n := range []int{400, 3000} { // from one line: a site is a stack
		grow(n)
		all := c.survivors()
		if len(all) != 1 || !strings.Contains(all[0].Site, "TestSurvivorsAreNamed") || all[0].Cycles < manyCycles || all[0].Bytes < int64(n)<<24 {
			t.Errorf("survivors %+v", all)
		}
		check()
		check()
		if told := len(h.of(logSurvives, "")); told != n/3000 {
			t.Errorf("told %d times of %d", told, n)
		}
	}
}

// TestStress owns, forgets, releases and resizes on 64 goroutines with a lock held,
// which every release takes.
func TestStress(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, procs := range []int{1, 2, 16} {
		before := runtime.GOMAXPROCS(procs)
		c := embed(t, Config{Policy: policy.MustParse("threshold:0.5").New(), Limit: 64 << 20})
		var cache sync.Mutex
		var owned, released atomic.Int64
		free := func(bytes int64) {
			cache.Lock()
			defer cache.Unlock()
			released.Add(bytes)
		}
		soon(t, 60*time.Second, "64 goroutines", func() {
			var all sync.WaitGroup
			for g := range 64 {
				beside(&all, func() {
					for i := range 200 {
						func() {
							cache.Lock()
							defer cache.Unlock()
							o := new(thing)
							h := Own(c, o, 1<<20, free, 1)
							owned.Add(1)
							if i%7 == g%7 {
								h.Resize(2 << 20)
							}
							runtime.KeepAlive(o)
						}()
						c.Account(100)
						c.Account(-100)
					}
				})
			}
			all.Wait()
		})
		soon(t, 60*time.Second, "the rest", func() {
			for released.Load() < owned.Load() {
				c.Collect(policy.TriggerExplicit)
			}
		})
		if live := c.own().live.Load(); live != 0 {
			t.Errorf("%d procs: %d bytes live at the end", procs, live)
		}
		runtime.GOMAXPROCS(before)
	}
}
