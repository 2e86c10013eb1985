//go:build go1.25

package gc_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// newCollector makes a collector on Go's runtime, which the end of the test closes.
func newCollector(t *testing.T, cfg gc.Config) *gc.Collector {
	t.Helper()
	c, err := gc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func mustPanic(t *testing.T, want string, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if e, ok := recover().(string); !ok || !strings.Contains(e, want) {
			t.Errorf("panics with %q, want %q", e, want)
		}
	}()
	do()
}

type file struct {
	fd   uintptr
	name string
}

func (f *file) close(uintptr) { f.fd = 0 }

func TestMisuseIsRefusedAtTheCall(t *testing.T) {
	c := newCollector(t, gc.Config{Policy: never()})
	f, free := &file{fd: 3, name: "x"}, func(uintptr) {}
	type pair struct {
		fd uintptr
		of *file
	}
	for what, tc := range map[string]struct {
		want string
		do   func()
	}{
		"owner as argument":     {"refers to the owner", func() { gc.Own(c, f, 1, func(*file) {}, f) }},
		"pointer into it":       {"refers to the owner", func() { gc.Own(c, f, 1, func(*string) {}, &f.name) }},
		"owner in a struct":     {"refers to the owner", func() { gc.Own(c, f, 1, func(pair) {}, pair{3, f}) }},
		"owner in an interface": {"refers to the owner", func() { gc.Own(c, f, 1, func(any) {}, any(f)) }},
		"owner in an array":     {"refers to the owner", func() { gc.Own(c, f, 1, func([2]pair) {}, [2]pair{{}, {3, f}}) }},
		"its last word":         {"refers to the owner", func() { gc.Own(c, f, 1, func(*byte) {}, (*byte)(unsafe.Add(unsafe.Pointer(f), unsafe.Sizeof(*f)-1))) }},
		"method value":          {"a method value of the owner", func() { gc.Own(c, f, 1, f.close, 3) }},
		"nil release":           {"nil release", func() { gc.Own[file, uintptr](c, f, 1, nil, 3) }},
		"nil owner":             {"nil owner", func() { gc.Own(c, (*file)(nil), 1, free, 3) }},
		"counted nil":           {"nil owner", func() { gc.Count(c, (*file)(nil), 1) }},
		"negative bytes":        {"with -1 bytes", func() { gc.Own(c, f, -1, free, 3) }},
		"absurd bytes":          {"want 0 to", func() { gc.Own(c, f, math.MaxInt64, free, 3) }},
		"tiny owner":            {"no identity", func() { gc.Own(c, new(int64), 1, free, 3) }},
		"empty owner":           {"no identity", func() { gc.Own(c, new(struct{}), 1, free, 3) }},
		"negative limit":        {"SetLimit with -1", func() { c.SetLimit(-1) }},
		"more back than there":  {"takes back 5 bytes, where only 0", func() { c.Account(-5) }},
		"absurd account":        {"Account with", func() { c.Account(math.MaxInt64) }},
		"absurdly less":         {"Account with", func() { c.Account(math.MinInt64) }},
		"resize":                {"Resize with -1", func() { gc.Own(c, f, 1, free, 3).Resize(-1) }},
	} {
		t.Run(what, func(t *testing.T) { mustPanic(t, tc.want, tc.do) })
	}
	mustPanic(t, "where only 0", func() { c.Account(-5) }) // the refused one took nothing
	h := gc.Own(c, new(*file), 1, free, 3)                 // 8 bytes, but a pointer
	if zero := (gc.Handle{}); !h.Resize(2) || !h.Release() || h.Release() || h.Resize(1) || zero.Release() || zero.Resize(1) {
		t.Error("a handle works after its end, or not before")
	}
	for _, cfg := range []gc.Config{{Limit: -1}, {Limit: gc.MaxBytes + 1}, {Caps: gc.Caps{Cycles: -0.1}}, {Caps: gc.Caps{Held: 1.1}}, {Caps: gc.Caps{Cycles: math.NaN()}}} {
		if c, err := gc.New(cfg); err == nil {
			c.Close()
			t.Errorf("%+v is no error", cfg)
		}
	}
}

// TestLikelyMisuseIsLogged, and panics in strict mode: a closure that has captured its owner, and a limit above the machine's memory.
// An owner's address that is only a number is a usual key, and right.
func TestLikelyMisuseIsLogged(t *testing.T) {
	f := &file{fd: 3, name: "x"}
	captures := func(c *gc.Collector) { gc.Own(c, f, 1, func(uintptr) { f.fd = 0 }, 3).Release() }
	info, err := pressure.HostMemory()
	limit := func() (*gc.Collector, *events) {
		log := new(events)
		c, _ := gc.New(gc.Config{Policy: never(), Log: slog.New(log), Limit: info.Total + 1})
		return c, log
	}
	c, log := limit()
	key := uintptr(unsafe.Pointer(f))
	gc.Own(c, f, 1, func([2]uintptr) {}, [2]uintptr{0, key}).Release()
	if err == nil && len(log.of("limit is above", "")) != 1 || len(log.all) > 1 {
		t.Errorf("told %+v", log.all)
	}
	if captures(c); len(log.of("captured its owner", "")) != 1 {
		t.Errorf("told %+v", log.all)
	}
	c.Close()
	t.Setenv("EAGERGC_STRICT", "1")
	mustPanic(t, "captured its owner", func() { captures(newCollector(t, gc.Config{Policy: never()})) })
	if err == nil {
		mustPanic(t, "limit is above", func() { limit() })
	}
	runtime.KeepAlive(f)
}

// broken is a policy, a recorder and a log handler that fail.
type broken struct {
	tape
	events
	action policy.Action
}

func (b *broken) Decide(policy.Point) policy.Decision {
	if b.action == 0 {
		panic("the policy is broken")
	}
	return policy.Decision{Action: b.action}
}
func (b *broken) Observe(policy.Cycle) {}
func (b *broken) String() string       { return "broken" }
func (b *broken) Record(trace.Event)   { panic("the recorder is broken") }

// TestFailuresAreContained: the part that fails is off, Err has the first failure, the log has all, and the collector goes on.
func TestFailuresAreContained(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  gc.Config
		p    policy.Policy
		do   func(*world)
		want string
	}{
		"a policy panics":         {p: new(broken), do: func(w *world) { w.c.Due() }, want: "policy *gc_test.broken panicked and is off: the policy is broken"},
		"a policy wants nonsense": {p: &broken{action: 7}, do: func(w *world) { w.c.Due() }, want: "action 7, which does not exist"},
		"a recorder panics":       {cfg: gc.Config{Recorder: &broken{tape: *newTape()}}, do: func(w *world) { w.c.Due() }, want: "the recorder panicked and is off"},
		"a release panics":        {do: func(w *world) { own(w.c, new(boxed), 5, func() { panic("torn") }); w.collect() }, want: "torn"},
		"a release ends":          {do: func(w *world) { own(w.c, new(boxed), 5, runtime.Goexit); w.collect() }, want: "runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.cfg, test.p, func(w *world) {
				s := newStore(w.c, pressure.Sample{Limit: 100})
				test.do(w)
				test.do(w)
				failures := uint64(2)
				if !strings.Contains(name, "release") {
					failures = 1
				}
				if err := w.c.Err(); err == nil || !strings.Contains(err.Error(), test.want) || w.c.Stats().Failures != failures {
					w.Fatalf("%d failures, the first is %v", w.c.Stats().Failures, err)
				}
				if got := w.log.of("failure contained", ""); len(got) != int(failures) || got[0].level != slog.LevelError {
					w.Errorf("told %+v", got)
				}
				if test.p != nil && w.c.Policy() != "never" {
					w.Errorf("goes on with %s", w.c.Policy())
				}
				if s.dead(1, 10); w.collect().Freed != 10 {
					w.Error("does not go on")
				}
			})
		})
	}
	t.Setenv("EAGERGC_STRICT", "1")
	c := newCollector(t, gc.Config{Policy: new(broken)})
	newStore(c, pressure.Sample{Limit: 100})
	mustPanic(t, "the policy is broken", func() { c.Due() })
}

// TestWhoChoosesThePolicy: the environment, then the program, then the memory: a device's wants another one than the host's.
func TestWhoChoosesThePolicy(t *testing.T) {
	watches := func(cfg gc.Config, space pressure.Space) string {
		c := newCollector(t, cfg)
		c.NewGate(&store{at: pressure.Sample{Space: space}})
		return c.Policy()
	}
	unknown := fmt.Sprint("gc_test", time.Now().UnixNano()) // is said once in a process
	chosen, log := gc.Config{Policy: policy.MustParse("cudajl").New()}, new(events)
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(log))
	for _, test := range []struct {
		variable string
		cfg      gc.Config
		space    pressure.Space
		want     string
	}{
		{"", gc.Config{}, pressure.Host, gc.HostPolicy}, {"", gc.Config{}, pressure.Device(0), gc.DefaultPolicy}, {"", chosen, pressure.Device(0), "cudajl"},
		{"threshold:0.5", chosen, pressure.Device(0), "threshold:0.5"}, {"never", chosen, pressure.Host, "never"},
		{unknown, chosen, pressure.Host, "cudajl"}, {unknown, chosen, pressure.Host, "cudajl"},
	} {
		t.Setenv(gc.PolicyVariable, test.variable)
		if got := watches(test.cfg, test.space); got != test.want && !strings.HasPrefix(got, test.want+":") {
			t.Errorf("%q: %s", test.variable, got)
		}
	}
	if len(log.of(unknown, "")) != 1 {
		t.Errorf("told of a variable that cannot be read: %+v", log.all)
	}
	t.Setenv(gc.PolicyVariable, "")
	c := newCollector(t, gc.Config{})
	c.SetPolicy(policy.MustParse("host").New())
	if c.NewGate(&store{at: pressure.Sample{Space: pressure.Device(0)}}); !strings.HasPrefix(c.Policy(), "host") {
		t.Errorf("the program's choice becomes %s", c.Policy())
	}
}

// TestLibrariesAreCounted, those that counted before Listen and after it, each under its name, until Close.
func TestLibrariesAreCounted(t *testing.T) {
	before, after := pressure.NewCounter("gc_test before"), (*pressure.Counter)(nil)
	before.Add(30)
	defer before.Sub(30)
	inBubble(t, gc.Config{}, never(), func(w *world) {
		w.c.Listen()
		w.c.Listen()
		after = pressure.NewCounter("gc_test after")
		pressure.NewCounter("gc_test after") // of the same name: they count as one
		after.Add(500)
		after.Add(70)
		w.e.begins = func() { after.Sub(500) } // as a cleanup does
		if w.c.Account(1); w.collect().Freed != 500 {
			w.Errorf("%+v", w.c.Stats().Last)
		}
		var got []string
		for _, n := range w.c.Counters() {
			if strings.HasPrefix(n.Name, "gc_test") {
				got = append(got, fmt.Sprintf("%s: %d in %d", n.Name, n.Live, n.Objects))
			}
			if n.Name == "gc_test after" && n.Freed != 500 {
				w.Errorf("%+v", n)
			}
		}
		if text := strings.Join(got, "; "); text != "gc_test after: 70 in 1; gc_test before: 30 in 1" {
			w.Error(text)
		}
		if live(w.c) < 101 {
			w.Errorf("%d live", live(w.c))
		}
		w.e.begins = nil
		w.c.Close()
		was := live(w.c)
		if after.Add(5); live(w.c) != was || w.c.Counters() != nil {
			w.Error("a closed collector counts")
		}
		after.Sub(70)
		after.Sub(5)
	})
}

// TestASyncPointHidesACycle behind its wait: the caller is held for the time by which the cycle is longer. A place learns its wait.
func TestASyncPointHidesACycle(t *testing.T) {
	p := always(policy.Decision{Action: policy.Block})
	inBubble(t, gc.Config{Caps: uncapped}, p, func(w *world) {
		newStore(w.c, pressure.Sample{Limit: 100})
		place, failure := &gc.WaitPlace{Name: "step"}, errors.New("the wait's")
		s := newTape()
		w.c.SetRecorder(s)
		var begun, times []time.Duration // on the recording's clock
		for _, wait := range []time.Duration{4 * ms, 60 * ms, 10 * ms} {
			held := w.c.Stats().Exposed
			begun = append(begun, s.Now())
			var err error
			d := w.takes(func() { err = w.c.Sync(place, func() error { time.Sleep(wait); return failure }) })
			more := max(0, 10*ms-wait)
			if held = w.c.Stats().Exposed - held; err != failure || d != wait+more || held != more || w.c.Stats().Last.Exposed != more {
				w.Errorf("a wait of %v takes %v, and holds for %v: %v", wait, d, held, err)
			}
			time.Sleep(time.Second)
		}
		if asked := p.shown(); !asked[0].WillBlock || asked[0].Wait != 0 || asked[1].Wait != 4*ms || place.Expected() < 4*ms || place.Expected() > 60*ms {
			w.Errorf("asked about %+v; expects %v", asked, place.Expected())
		}
		w.c.SetRecorder(nil)
		var waits []time.Duration
		for _, e := range s.t.Events {
			if e.Kind == trace.Sync && s.t.Label(e) == "step" {
				waits, times = append(waits, e.Duration), append(times, time.Duration(e.Time))
			}
		}
		if !slices.Equal(times, begun) || waits[1] != 60*ms {
			w.Errorf("recorded waits of %v at %v, and they began at %v", waits, times, begun)
		}
	})
}

// TestCallsDuringACycleShareTheNext. Each is held until that has settled, for one pause for each cycle.
func TestCallsDuringACycleShareTheNext(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		var first policy.Cycle
		beside(func() { first = w.collect() })
		time.Sleep(4 * ms)
		var held [3]time.Duration
		for i := range held {
			beside(func() { held[i] = w.takes(func() { w.collect() }) })
		}
		sleep(time.Second)
		s := w.c.Stats()
		if total(w.c) != 2 || held != [3]time.Duration{16 * ms, 16 * ms, 16 * ms} || s.Exposed != 10*ms+3*16*ms || s.MaxPause != 10*ms || gc.PauseBound(6) != 10*ms || s.Pauses[6] != 7 {
			w.Errorf("%d cycles, callers are held for %v: %+v", total(w.c), held, s)
		}
		if first.Exposed != 10*ms {
			w.Errorf("the cycle held a caller for %v, and others for less", first.Exposed)
		}
		w.c.Close()
		w.c.Close()
		if w.collect() != (policy.Cycle{}) || total(w.c) != 2 {
			w.Error("a closed collector collects")
		}
	})
}

// TestARefusalTellsWhatWasWanted to the policy's next cycle, and another limit has the policy asked at once.
func TestARefusalTellsWhatWasWanted(t *testing.T) {
	p := always(policy.Decision{Wake: math.MaxInt64 / 2})
	inBubble(t, gc.Config{}, p, func(w *world) {
		s := newStore(w.c, pressure.Sample{Live: 90, Limit: 100})
		s.alloc(1)
		n := len(p.shown())
		if s.alloc(1); len(p.shown()) != n {
			w.Error("asked below the wake level")
		}
		s.gate.Changed()
		if s.alloc(1); len(p.shown()) != n+1 {
			w.Error("not asked after a change")
		}
		s.gate.Refused(50)
		s.gate.Refused(20)
		was := w.c.Snapshot().Sources[0].Settled
		if w.collect(); w.c.Stats().Last.Wanted != 110 || was != -1 || w.c.Snapshot().Sources[0].Settled != 90 {
			w.Errorf("%d, %+v", was, w.c.Snapshot())
		}
		if w.collect(); w.c.Stats().Last.Wanted != 0 {
			w.Error("wanted twice")
		}
		(*gc.Gate)(nil).Allocating(1, 1)
		(*gc.Gate)(nil).Refused(1)
	})
}

// TestASnapshotHasTheLastMinutes: a step belongs to a time if a part of it does, and is forgotten
// after 512 of the longest.
func TestASnapshotHasTheLastMinutes(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		w.collect() // in the first step
		time.Sleep(time.Second)
		s := w.c.Snapshot()
		for d, want := range map[time.Duration]uint64{s.Now - s.Step/2: 1, s.Now - s.Step: 0} {
			if done, _ := s.Last(d); done.Cycles[policy.TriggerExplicit] != want {
				w.Errorf("the last %v have %+v", d, done)
			}
		}
		for _, at := range []time.Duration{274 * time.Second, 275 * time.Second} {
			time.Sleep(at - w.c.Now())
			if s := w.c.Snapshot(); len(s.Work) != bit(at < 512*s.Step) {
				w.Errorf("after %v: %+v", at, s.Work)
			}
		}
	})
}

// TestALateValueIsOfTheLastStep: goroutines may read the clock in one order and count in another.
func TestALateValueIsOfTheLastStep(t *testing.T) {
	var s observe.Series[int]
	for i, at := range []time.Duration{2 * observe.Step, 2*observe.Step - 1, 2 * observe.Step, 3 * observe.Step} {
		step, fresh := s.At(at)
		if *step++; fresh != (i == 0 || i == 3) {
			t.Errorf("%v begins a step: %v", at, fresh)
		}
	}
	if got := s.List(4 * observe.Step); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("steps %v", got)
	}
}

// TestALargeSurvivorCountsWhole, even if it is the first that is noted.
func TestALargeSurvivorCountsWhole(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		owner := new(boxed)
		own(w.c, owner, 64*mib, func() {})
		for range 16 {
			w.collect()
		}
		if all := w.c.Snapshot().Survivors; len(all) != 1 || all[0].Bytes != 64*mib {
			w.Errorf("%+v", all)
		}
		runtime.KeepAlive(owner)
	})
}

// TestAClosedGaugeIsNotRead, and one that is open reads no less than 0 and no more than there can be.
func TestAClosedGaugeIsNotRead(t *testing.T) {
	inBubble(t, gc.Config{}, never(), func(w *world) {
		var reads, level atomic.Int64
		g := gc.Watch(w.c, func() int64 { reads.Add(1); return level.Load() })
		for reads, want := range map[int64]int64{-5: 0, 7: 7, math.MaxInt64: gc.MaxBytes} {
			level.Store(reads)
			if got := g.Look(); got != want || live(w.c) != want {
				w.Errorf("a reading of %d bytes counts as %d", reads, got)
			}
		}
		g.Close()
		g.Close()
		sleep(time.Second)
		n := reads.Load()
		w.collect()
		if sleep(time.Second); reads.Load() != n || len(w.c.Snapshot().Sources) > 0 {
			w.Errorf("it was read %d times after Close", reads.Load()-n)
		}
	})
}

// TestResizeAsksForWhatIsMore: growth is an allocation, and the other way round nothing is.
func TestResizeAsksForWhatIsMore(t *testing.T) {
	p := &scripted{}
	inBubble(t, gc.Config{}, p, func(w *world) {
		owner := new(boxed)
		h := own(w.c, owner, 100, func() {})
		h.Resize(250)
		n := len(p.shown())
		h.Resize(50)
		w.c.Account(1)
		all := p.shown()
		if len(all) != n+1 || all[n-1].Request != 150 || all[n].Allocated != 250 || all[n].Sample.Live != 50 {
			w.Errorf("asked %+v", all)
		}
		runtime.KeepAlive(owner)
	})
}

// TestALevelHasTheMostOfItsStep: what was reserved at most, the live bytes in between, and the last limit; and a gate that was closed asks nobody.
func TestALevelHasTheMostOfItsStep(t *testing.T) {
	p := &scripted{}
	inBubble(t, gc.Config{}, p, func(w *world) {
		s := newStore(w.c, pressure.Sample{})
		for _, at := range []pressure.Sample{{Live: 5, Reserved: 20, Limit: 100}, {Live: 9, Reserved: 50, Limit: 200}, {Live: 2, Reserved: 30, Limit: 300}, {Live: 3, Reserved: 10, Limit: 400}} {
			s.set(at)
			w.c.Snapshot()
		}
		levels := w.c.Snapshot().Sources[0].Levels
		if l := levels[len(levels)-1]; l.Least > 2 || l.Most != 9 || l.Last != 3 || l.Reserved != 50 || l.Limit != 400 {
			w.Errorf("%+v", l)
		}
		s.gate.Close()
		n := len(p.shown())
		if s.alloc(1 << 40); len(p.shown()) != n {
			w.Error("a closed gate asks")
		}
	})
}

// TestAForgottenCollector gives back what it tracks, and is garbage after that.
func TestAForgottenCollector(t *testing.T) {
	released := make(chan bool, 1)
	c := func() weak.Pointer[gc.Collector] {
		c, err := gc.New(gc.Config{Idle: -1})
		if err != nil {
			t.Fatal(err)
		}
		owner := new(boxed)
		gc.Own(c, owner, 4<<10, func(done chan bool) { done <- true }, released)
		for range 3 { // the collector is reachable by its owners alone
			runtime.GC()
		}
		runtime.KeepAlive(owner)
		return weak.Make(c)
	}()
	for end := time.Now().Add(20 * time.Second); len(released) == 0 || c.Value() != nil; time.Sleep(ms) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("given back %d times; the collector is still there: %v", len(released), c.Value() != nil)
		}
	}
}
