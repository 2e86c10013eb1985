package gc

import (
	"log/slog"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A bound is an object of a binding that has a finalizer.
type bound struct {
	memory *atomic.Int64 // 1 = taken
	_      [4]*int
}

// TestReleasesComeAfterFinalizers: a finalizer finds what its object owns, as with runtime.AddCleanup.
func TestReleasesComeAfterFinalizers(t *testing.T) {
	countsFinalizers(t)
	quiet(t)
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	const objects = 200
	var late, finalized, released atomic.Int64
	for i := range objects {
		o := &bound{memory: new(atomic.Int64)}
		o.memory.Store(1)
		runtime.SetFinalizer(o, func(o *bound) {
			time.Sleep(10 * time.Microsecond)
			if finalized.Add(1); o.memory.Load() == 0 {
				late.Add(1)
			}
		})
		Own(c, o, int64(1+i%2*ownLarge), func(m *atomic.Int64) { m.Store(0); released.Add(1) }, o.memory)
	}
	cycle := c.Collect(policy.TriggerExplicit)
	waitFor(t, 20*time.Second, func() bool { return released.Load() == objects })
	if late.Load() > 0 || finalized.Load() != objects {
		t.Errorf("%d of %d finalizers ran, %d of them after the release", finalized.Load(), objects, late.Load())
	}
	if want := int64(objects + objects/2*ownLarge); cycle.Freed != want {
		t.Errorf("the cycle reports %d bytes, want %d", cycle.Freed, want)
	}
}

// countsFinalizers skips where the runtime does not say how many finalizers have run.
func countsFinalizers(t *testing.T) {
	s := []metrics.Sample{{Name: "/gc/finalizers/queued:finalizers"}}
	if metrics.Read(s); s[0].Value.Kind() == metrics.KindBad {
		t.Skip("this version of Go does not count finalizers")
	}
}

// TestABlockedFinalizerIsToldOf: what waits for it stays live, and nobody waits for long.
func TestABlockedFinalizerIsToldOf(t *testing.T) {
	countsFinalizers(t)
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	c.releases.patience, c.releases.bound = releasePatience, releaseBound
	block := make(chan struct{})
	open := sync.OnceFunc(func() { close(block) })
	defer open()
	began := make(chan struct{})
	runtime.SetFinalizer(new(bound), func(*bound) { close(began); <-block })
	runtime.GC()
	<-began
	var released atomic.Int64
	ownFunc(c, new(thing), 100, func() { released.Add(1) })
	soon(t, 20*time.Second, "a cycle beside a finalizer that blocks", func() { c.Collect(policy.TriggerExplicit) })
	if s := c.Stats(); s.Pending != 1 || released.Load() != 0 {
		t.Errorf("%d pending, %d released", s.Pending, released.Load())
	}
	waitFor(t, 20*time.Second, func() bool { return c.Err() != nil })
	time.Sleep(10 * ms)
	open()
	waitFor(t, 20*time.Second, func() bool { return released.Load() == 1 && c.Stats().Pending == 0 })
	if n := c.Stats().Failures; n != 1 {
		t.Errorf("it is told %d times that one blocks", n)
	}
}

// TestCountLastsUntilMemoryIsBack, which a finalizer or a cleanup of the owner gives back.
func TestCountLastsUntilMemoryIsBack(t *testing.T) {
	countsFinalizers(t)
	quiet(t)
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	const objects = 100
	var back, early atomic.Int64
	kept := new(bound)
	for i := range objects {
		o := new(bound)
		if i%2 == 0 {
			runtime.SetFinalizer(o, func(*bound) { back.Add(1) })
		} else {
			runtime.AddCleanup(o, func(int) { time.Sleep(100 * time.Microsecond); back.Add(1) }, 0)
		}
		Count(c, o, 10)
	}
	h := Count(c, kept, 7)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				if live := c.own().live.Load(); back.Load() < (objects*10+7-live)/10 {
					early.Add(1)
				}
			}
		}
	}()
	freed := c.Collect(policy.TriggerExplicit).Freed
	close(stop)
	if freed != objects*10 || back.Load() != objects || early.Load() > 0 {
		t.Errorf("freed %d, %d came back, %d times counted before", freed, back.Load(), early.Load())
	}
	runtime.KeepAlive(kept)
	if !h.Release() || c.own().live.Load() != 0 {
		t.Errorf("%d live after the last one", c.own().live.Load())
	}
}

// TestManyReleasesThatNeverReturn do not stop others, and the program is told.
func TestManyReleasesThatNeverReturn(t *testing.T) {
	log := &events{level: slog.LevelWarn}
	c := newCollector(t, Config{Policy: policy.Spec{}.New(), Limit: 1000, Caps: Caps{Cycles: 1}, Log: slog.New(log)})
	c.releases.patience, c.releases.bound = 1, 10
	const bad, good = manyStuck + 2, 1000
	block := make(chan struct{})
	unblock := sync.OnceFunc(func() { close(block) })
	defer unblock()
	var released atomic.Int64
	for range bad {
		ownFunc(c, new(thing), 100, func() { <-block })
	}
	for range good {
		ownFunc(c, new(thing), 1, func() { released.Add(1) })
	}
	c.Collect(policy.TriggerExplicit)
	waitFor(t, 30*time.Second, func() bool { return released.Load() == good && c.Stats().Pending == bad })
	if c.Err() == nil {
		t.Error("no error says that releases do not return")
	}
	c.Collect(policy.TriggerExplicit)
	waitFor(t, 20*time.Second, func() bool { return len(log.of(logOverStuck, "")) > 0 })
	if len(log.of(logOver, "")) > 0 || !c.Stats().OverLimit {
		t.Errorf("the log says %+v", log.all)
	}
	unblock() // what comes late counts, too
	waitFor(t, 20*time.Second, func() bool { return c.Stats().Pending == 0 })
	waitFor(t, 20*time.Second, func() bool { s := c.Stats(); return s.Objects == bad+good && s.Freed == 100*bad+good })
}

// TestWhyOverTheLimit: what was added during the cycle is not taken for reachable.
func TestWhyOverTheLimit(t *testing.T) {
	log := &events{level: slog.LevelWarn}
	e := newPuppet()
	c := newOn(e, Config{Caps: Caps{Cycles: 1, Assist: time.Nanosecond}, Idle: -1, Limit: 100, Log: slog.New(log)}, policy.Spec{}.New())
	t.Cleanup(c.Close)
	cycle := func(beside func()) {
		done := make(chan struct{})
		go func() { c.Collect(policy.TriggerExplicit); close(done) }()
		end := <-e.marks
		beside()
		end <- 0
		<-done
	}
	logged := func(text string) []event { // which is after whoever waited has gone on
		waitFor(t, 20*time.Second, func() bool { return len(log.of(text, "")) == 1 })
		return log.of(text, "")
	}
	c.Account(90)
	cycle(func() { c.Account(60) })
	if late := logged(logOverLate); !late[0].has(map[string]any{"added_bytes": int64(60), "enough_bytes": int64(210)}) {
		t.Errorf("logged %+v", late)
	}
	cycle(func() {})
	logged(logOver)
	cycle(func() {})
	c.Account(-100)
	cycle(func() {})
	if c.Stats().OverLimit {
		t.Error("over the limit still")
	}
	cycle(func() { c.Account(100) }) // over it again at once: told already
	c.Account(-100)
	e.pass(2 * busyWindow)
	cycle(func() {})
	cycle(func() { c.Account(100) }) // over it once more, which is told once more
	waitFor(t, 20*time.Second, func() bool { return len(log.of(logOverLate, "")) == 2 })
	c.Close()
	if s := c.Stats(); s.Over != 3 || len(log.of(logOver, "")) != 1 || len(log.of(logOverStuck, "")) > 0 {
		t.Errorf("%+v, logged %+v", s, log.all)
	}
}

// TestWhyCyclesTakeMuchTime is logged once, and again for twice as much.
func TestWhyCyclesTakeMuchTime(t *testing.T) {
	log := &events{level: slog.LevelInfo}
	e := newPuppet()
	e.each = time.Duration(runtime.GOMAXPROCS(0)) * time.Second
	c := newOn(e, Config{Caps: uncapped, Idle: -1, Log: slog.New(log)}, &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: policy.Overlap, Reason: "it pays"} }})
	t.Cleanup(c.Close)
	c.NewGate(new(level))
	cycle := func() {
		c.Sync(nil, func() error { return nil })
		end := <-e.marks
		end <- 0
		c.Wait()
	}
	for _, minute := range []struct{ cycles, logged int }{{1, 0}, {2, 1}, {3, 1}, {5, 2}} { // of a second each
		for range minute.cycles - 1 {
			cycle()
		}
		e.pass(time.Minute)
		cycle()
		if minute.logged > 0 {
			waitFor(t, 20*time.Second, func() bool { return len(log.of(logBusy, "")) >= minute.logged })
		}
		if got := log.of(logBusy, ""); len(got) != minute.logged {
			t.Fatalf("after a minute with %d cycles of a second: logged %+v", minute.cycles, got)
		} else if len(got) == 1 && !got[0].has(map[string]any{"last_reason": "it pays", "policy": "scripted"}) {
			t.Errorf("logged %+v", got[0])
		}
	}
}

// TestThatCallersAreHeld is logged, where it is for a tenth of a minute.
func TestThatCallersAreHeld(t *testing.T) {
	for _, minute := range []struct {
		held   time.Duration
		logged int
	}{{5 * time.Second, 0}, {10 * time.Second, 1}} {
		log := &events{level: slog.LevelWarn}
		e := newPuppet()
		c := newOn(e, Config{Caps: uncapped, Idle: -1, Log: slog.New(log)}, policy.MustParse("never").New())
		c.NewGate(new(level))
		for _, held := range []time.Duration{minute.held, 0} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Collect(policy.TriggerExplicit)
			}()
			end := <-e.marks
			waitFor(t, 20*time.Second, func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.current.Load().held != noOne
			})
			e.pass(held)
			end <- 0
			<-done
			e.pass(time.Minute - held)
		}
		waitFor(t, 20*time.Second, func() bool { return len(log.of(logHeld, "")) >= minute.logged }) // Collect does not wait for the log
		if got := log.of(logHeld, ""); len(got) != minute.logged {
			t.Errorf("held for %v of a minute: logged %+v", minute.held, got)
		}
		c.Close()
	}
}

// TestAFenceIsPassedWhenItsFinalizersHaveRun: others that were queued later may run before them.
func TestAFenceIsPassedWhenItsFinalizersHaveRun(t *testing.T) {
	c, _, _ := staged(t, policy.Spec{}.New())
	b := &batch{fence: fence{finalizers: 5}}
	for i, step := range []struct {
		queued, run uint64
		passed      bool
	}{{5, 4, false}, {9, 5, false}, {12, 8, false}, {12, 9, true}} {
		if got := c.passed(b, pending{finalizers: step.queued, finalized: step.run, cleanups: 1}); got != step.passed {
			t.Errorf("step %d: passed %v", i, got)
		}
	}
	if b = new(batch); !c.passed(b, pending{}) {
		t.Error("waits, where none was queued")
	}
	b = &batch{counted: true}
	for _, p := range []pending{{cleanups: 1}, {finalizers: 1}} {
		if c.passed(b, p) {
			t.Errorf("what is counted is given back with %+v", p)
		}
	}
	if !c.passed(b, pending{cleanups: 1, cleaned: 1}) {
		t.Error("what is counted waits for ever")
	}
	b = &batch{counted: true, fence: fence{marks: 1}} // the sweep may still find finalizers and cleanups due
	if c.passed(b, pending{}) {
		t.Error("what is counted is given back before the sweep has ended")
	}
}

// TestACycleTellsWhatWasWanted: the least that did not fit since the last one.
func TestACycleTellsWhatWasWanted(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	for _, step := range []struct {
		refused []int64
		want    int64
	}{{[]int64{50, 20, 70}, 120}, {nil, 0}, {[]int64{70, 50}, 150}} {
		for _, bytes := range step.refused {
			g.gate.Refused(bytes)
		}
		go func() { (<-e.marks) <- 0 }()
		if got := c.Collect(policy.TriggerExplicit).Wanted; got != step.want {
			t.Errorf("refused %d: the cycle says %d, want %d", step.refused, got, step.want)
		}
	}
}

// TestNotesOfALimit: which cause, and what is said of it, by the bytes that a cycle has left.
func TestNotesOfALimit(t *testing.T) {
	for _, test := range []struct {
		live, dying, added int64
		text               string
		enough             int64
	}{
		{100, 0, 0, "", 0}, {101, 0, 0, logOver, 101}, {101, 0, 1, logOverLate, 102}, {150, 50, 0, logOverStuck, 100}, {150, 49, 0, logOver, 101},
		{150, 20, 30, logOverLate, 160}, {150, 20, 29, logOver, 159}, {150, 50, 70, logOverStuck, 170},
	} {
		c := newOn(newPuppet(), Config{Idle: -1}, policy.Spec{}.New())
		c.noteOver(policy.Cycle{LiveAfter: test.live, Limit: 100, Freed: 7, Duration: 9}, test.dying, test.added)
		if over := test.text != ""; over != c.over.now || over != (c.stats.Over == 1) || over != (len(c.pendingLog) == 1) {
			t.Errorf("%+v: over %+v, %d times, logs %+v", test, c.over, c.stats.Over, c.pendingLog)
		}
		for _, s := range c.pendingLog {
			want := []slog.Attr{
				slog.Int64("live_bytes", test.live), slog.Int64("limit_bytes", 100), slog.Int64("freed_bytes", 7),
				slog.Int64("not_given_back_bytes", test.dying), slog.Int64("added_bytes", test.added), slog.Duration("cycle", 9), slog.Int64("enough_bytes", test.enough),
			}
			if s.text != test.text || s.level != slog.LevelWarn || !s.aloud || !slices.EqualFunc(s.attrs, want, slog.Attr.Equal) {
				t.Errorf("%+v: logs %+v", test, s)
			}
		}
		c.pendingLog = nil
		c.Close()
	}
	c := newOn(newPuppet(), Config{Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	for i, step := range []struct {
		at     time.Duration
		live   int64
		now    bool
		times  uint64
		logged int // so far
	}{
		{1 * time.Second, 150, true, 1, 1}, {2 * time.Second, 150, true, 1, 1}, {3 * time.Second, 100, false, 1, 1}, {4 * time.Second, 150, true, 2, 1},
		{64 * time.Second, 100, false, 2, 1}, {65 * time.Second, 150, true, 3, 1}, {125*time.Second + 1, 100, false, 3, 1}, {126 * time.Second, 150, true, 4, 2},
	} {
		c.noteOver(policy.Cycle{Start: step.at, LiveAfter: step.live, Limit: 100}, 0, 0)
		if c.over.now != step.now || c.stats.Over != step.times || len(c.pendingLog) != step.logged {
			t.Errorf("step %d: %+v, %d times, logs %d", i, c.over, c.stats.Over, len(c.pendingLog))
		}
	}
	c.pendingLog = nil
}

// TestNotesOfAMinute: once a minute, from a share on, and again from twice that.
func TestNotesOfAMinute(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	c := newOn(newPuppet(), Config{Idle: -1, Caps: Caps{Cycles: 0.5}}, &scripted{})
	defer c.Close()
	c.journal.decided(policy.Point{}, policy.Decision{Action: policy.Overlap, Reason: "it pays"})
	now, processor, exposed, cycles := time.Hour, time.Duration(0), time.Duration(0), uint64(0)
	c.busy.from = now
	for i, step := range []struct {
		window          time.Duration
		processor, held time.Duration // in it
		share, heldAt   float64       // that are logged; 0: nothing is
	}{
		{time.Minute - 1, 60 * time.Second, 60 * time.Second, 0, 0}, // too short, and counted in the next
		{1, 0, 0, 0.5, 1},
		{time.Minute, 119 * time.Second, 60 * time.Second, 0, 0}, // less than twice that
		{time.Minute, 120 * time.Second, 120 * time.Second, 1, 2},
	} {
		now, processor, exposed, cycles = now+step.window, processor+step.processor, exposed+step.held, cycles+3
		c.stats.Processor, c.stats.Exposed = processor, exposed
		c.stats.Cycles[policy.TriggerPolicy], c.stats.Cycles[policy.TriggerNatural] = cycles-1, 1
		c.stats.Last = policy.Cycle{LiveAfter: 77, Limit: 88}
		from := c.busy.from
		c.noteBusy(now)
		var want []logEntry
		if n := 3 * (1 + uint64(map[bool]int{true: 1}[i == 1])); step.share > 0 {
			want = append(want, logEntry{slog.LevelInfo, logBusy, []slog.Attr{
				slog.Float64("processor_share", step.share), slog.Float64("cycles_per_second", float64(n)/60), slog.String("policy", "scripted"),
				slog.String("last_reason", "it pays"), slog.Float64("at_most", 0.5), slog.Duration("cycle", c.expected.Cost),
			}, true}, logEntry{slog.LevelWarn, logHeld, []slog.Attr{
				slog.Float64("held_share", step.heldAt), slog.Uint64("cycles", n), slog.Duration("cycle", c.expected.Cost),
				slog.Int64("live_after_bytes", 77), slog.Int64("limit_bytes", 88),
			}, true})
		}
		if len(c.pendingLog) != len(want) {
			t.Fatalf("step %d: logs %+v, want %+v", i, c.pendingLog, want)
		}
		for k, s := range c.pendingLog {
			if w := want[k]; s.level != w.level || s.text != w.text || s.aloud != w.aloud || !slices.EqualFunc(s.attrs, w.attrs, slog.Attr.Equal) {
				t.Errorf("step %d: logs %+v, want %+v", i, s, w)
			}
		}
		if ends := i > 0; (c.busy.from == now) != ends || !ends && c.busy.from != from {
			t.Errorf("step %d: the window begins at %v", i, c.busy.from)
		}
		c.pendingLog = nil
	}
	for _, least := range []struct {
		processor, held time.Duration
		logs            int
	}{{3600 * ms, 5999 * ms, 1}, {3599 * ms, 6 * time.Second, 1}, {3599 * ms, 5999 * ms, 0}} { // 3 % of two processors, a tenth of the time
		now += time.Minute
		c.busy.told, c.busy.toldHeld = 0, 0
		c.stats.Processor += least.processor
		c.stats.Exposed += least.held
		if c.noteBusy(now); len(c.pendingLog) != least.logs {
			t.Errorf("%+v: logs %+v", least, c.pendingLog)
		}
		c.pendingLog = nil
	}
}
