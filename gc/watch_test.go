package gc

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace"
)

// A foreign library counts its own bytes; a cleanup of each object gives them back.
type foreign struct{ bytes atomic.Int64 }

type handle struct{ _ [4]*int }

// alloc returns an object that stands for n bytes.
func (f *foreign) alloc(n int64) *handle {
	h := new(handle)
	f.bytes.Add(n)
	runtime.AddCleanup(h, func(n int64) { f.bytes.Add(-n) }, n)
	return h
}

// watched returns a collector with a gauge of f.
func watched(t *testing.T, f *foreign, rule string) (*Collector, *Gauge) {
	t.Helper()
	c, err := New(Config{Policy: policy.MustParse(rule).New()})
	if err != nil {
		t.Fatal(err)
	}
	g := Watch(c, f.bytes.Load)
	t.Cleanup(func() {
		g.Close()
		g.Close() // harmless
		atRest(t, c)
		c.Close()
	})
	return c, g
}

// What a library counts goes back without a Close, by its own cleanups, and nobody is held.
func TestGaugeStaysLow(t *testing.T) {
	var f foreign
	c, g := watched(t, &f, "growth:min=8MiB")
	for c.Stats().Freed < 100<<20 {
		f.alloc(1 << 20)
		g.Look()
		if f.bytes.Load() > 1<<30 {
			t.Fatalf("%d bytes are live: %+v", f.bytes.Load(), c.Stats())
		}
		time.Sleep(time.Duration(100+f.bytes.Load()>>15) * time.Microsecond) // cleanups may come late
	}
	s := c.Stats()
	if s.Cycles[policy.TriggerPolicy] == 0 || s.Exposed != 0 {
		t.Errorf("want cycles of the policy, and nobody held: %+v", s)
	}
	waitFor(t, 20*time.Second, func() bool { // since cycles give back
		f.alloc(1 << 20)
		g.Look()
		return g.Resting() == 0
	})
}

// Held memory is no garbage: the gauge comes to rest above its limit, too.
func TestGaugeOfHeldMemoryRests(t *testing.T) {
	var f foreign
	c, g := watched(t, &f, "threshold:0.5")
	g.SetLimit(64 << 20)
	var held []*handle
	waitFor(t, 20*time.Second, func() bool {
		if len(held) < 70 {
			held = append(held, f.alloc(1<<20))
		} else {
			f.bytes.Add(1 << 10) // so that each look asks
		}
		g.Look()
		return g.Resting() > 0
	})
	c.Wait() // that cycle is counted
	before := c.Stats().Cycles[policy.TriggerPolicy]
	for range 200 {
		f.bytes.Add(1 << 10)
		g.Look()
	}
	if after := c.Stats().Cycles[policy.TriggerPolicy]; after > before {
		t.Errorf("%d cycles while the gauge rests", after-before)
	}
	runtime.KeepAlive(held)
}

func TestBackoff(t *testing.T) {
	const mib, ms = 1 << 20, time.Millisecond
	const heap = 4 * mib
	const high = 1000 * mib
	r := backoff{level: 100 * mib}
	for grown, want := range map[int64]bool{12 * mib: true, 13 * mib: false} {
		if s := r; s.on(100*mib+grown, heap, 0) != want {
			t.Errorf("at first, %d bytes more: want %v", grown, want)
		}
	}
	if s := r; !s.on(700*mib, 1000*mib, 0) {
		t.Error("a cycle that marks 1 GB is asked for after 600 MB")
	}
	for name, c := range map[string]struct {
		o    outcome
		want bool
	}{
		"a twentieth came back":         {outcome{asked: true, freed: high / 20}, false},
		"nothing did":                   {outcome{asked: true}, true},
		"less, most of what had grown":  {outcome{asked: true, freed: 3 * mib, grown: 5 * mib}, false},
		"most of what had grown, a bit": {outcome{asked: true, freed: 1 * mib, grown: 1 * mib}, true},
		"an allocator got it":           {outcome{asked: true, ran: 1}, false},
		"a cycle of the runtime's own":  {outcome{freed: high / 2, ran: 1}, false},
		"its falls are the program's":   {outcome{freed: high / 2}, true},
	} {
		s := r
		c.o.high = high
		if s.learn(c.o, 0); s.proved() == c.want {
			t.Errorf("%s: rests %v", name, !c.want)
		}
	}
	vain := outcome{asked: true, high: high, work: ms / 20}
	r.learn(vain, 0)
	for name, c := range map[string]struct {
		level int64
		now   time.Duration
		want  bool
	}{
		"at once":                   {1000 * mib, 0, true},
		"more, too soon":            {2000 * mib, firstRest - 1, true},
		"more than twice as much":   {2021 * mib, 0, false},
		"later, no more":            {1000 * mib, 2 * firstRest, true},
		"later, and an eighth more": {1125 * mib, firstRest, false},
	} {
		if s := r; s.on(c.level, heap, c.now) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
	s := r
	if s.see(800 * mib); !s.on(800*mib, heap, lastRest) || s.on(900*mib, heap, lastRest) {
		t.Error("growth does not count from the lowest level since")
	}
	if r.learn(vain, 0); r.length != 2*firstRest {
		t.Errorf("the second rest is %v", r.length)
	}
	vain.work = 100 * ms
	if r.learn(vain, 0); r.length != 10*time.Second {
		t.Errorf("after a cycle of 100 ms: %v, want 1 %% of the time in cycles", r.length)
	}
	vain.work = ms
	for range 20 {
		r.learn(vain, 0)
	}
	if r.length != lastRest {
		t.Errorf("the longest rest is %v", r.length)
	}
}

// A cycle that came before there was anything to find proves nothing: the next waits for time, or for growth.
func TestBackoffOfEarlyCycles(t *testing.T) {
	const mib = 1 << 20
	r := backoff{worth: 1}
	early := outcome{asked: true, high: 100 * mib, risen: 4 * mib}
	for i := range 4 {
		if r.learn(early, 0); !r.proved() || r.length != firstRest<<i {
			t.Errorf("after %d: proved %v, rests %v", i+1, r.proved(), r.length)
		}
	}
	if !r.on(110*mib, 4*mib, 0) || r.on(113*mib, 4*mib, 0) || r.on(100*mib, 4*mib, r.length) {
		t.Error("want a rest until the time is over, or an eighth has come")
	}
	early.risen = 5 * mib
	if r.learn(early, 0); r.length != 0 || r.worth != 0.5 {
		t.Errorf("a cycle that could have found a twentieth: worth %v, rests %v", r.worth, r.length)
	}
}

// What is allocated from memory that was freed before shows by the finalizers that run.
func TestReuse(t *testing.T) {
	const ms = time.Millisecond
	var r reuse
	for i, step := range []struct {
		ran, grown int64
		kept       float64
	}{
		{0, 500, 0},
		{10, 1000, 0},            // 100 for each
		{10, 0, 1000 * keepEach}, // all was taken again
		{10, 2000, 0},            // 200 for each
		{0, 0, 0},
	} {
		if r.learn(step.ran, step.grown, 10*ms); r.kept != step.kept {
			t.Errorf("step %d: %v bytes taken again, want %v", i, r.kept, step.kept)
		}
	}
	r.learn(10, 1000, 10*ms)
	if half, all := r.since(5*ms), r.since(time.Hour); half != int64(r.kept/2) || all != int64(r.kept) {
		t.Errorf("%d after half the time, %d at last, of %v", half, all, r.kept)
	}
}

// Finalizers that free after the cycle has been counted lower what it is taken to have left.
func TestGaugeFallsLate(t *testing.T) {
	var bytes atomic.Int64
	bytes.Store(100)
	c, err := New(Config{Policy: policy.Spec{}.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := Watch(c, bytes.Load)
	defer g.Close()
	bytes.Store(40)
	if got := g.Look(); got != 40 || g.gate.liveAfter != 40 {
		t.Errorf("level %d, after the last cycle %d", got, g.gate.liveAfter)
	}
	bytes.Store(90)
	if g.Look(); g.gate.liveAfter != 40 || g.Allocated() != 150 {
		t.Errorf("after the last cycle %d, %d from the start: want 40, and 100 with a rise of 50", g.gate.liveAfter, g.Allocated())
	}
}

// A recording has what the gauge read: rises, and what came back.
func TestGaugeIsRecorded(t *testing.T) {
	rec := &recording{made: time.Now()}
	var bytes atomic.Int64
	bytes.Store(5)
	c := embed(t, Config{Policy: policy.Spec{}.New(), Recorder: rec})
	g := Watch(c, bytes.Load)
	for _, level := range []int64{12, 6, 20} { // 5 + 7, then the oldest 5 and a part of the 7 go
		bytes.Store(level)
		g.Look()
	}
	bytes.Store(7)
	g.Look()
	g.Close()
	c.SetRecorder(nil)
	var live int64
	moves := ""
	for _, e := range rec.Events {
		switch e.Kind {
		case trace.Alloc:
			live += e.Bytes
			moves += fmt.Sprintf("+%d", e.Bytes)
		case trace.Free:
			live -= e.Bytes
			moves += fmt.Sprintf("-%d", e.Bytes)
		}
	}
	if moves != "+5+7-5+14-7" || live != 14 {
		t.Errorf("%s, %d bytes live: want +5+7-5+14-7 and 14, of which 7 are not known to be free", moves, live)
	}
}

// One cycle in vain among others that brought something back is no reason to wait for growth.
func TestBackoffForgivesOneInVain(t *testing.T) {
	const work = time.Millisecond
	r := backoff{level: 100 << 20}
	good, vain := outcome{asked: true, high: 100 << 20, freed: 50 << 20}, outcome{asked: true, high: 100 << 20, risen: 10 << 20, work: work}
	r.learn(good, 0)
	for i := range 3 {
		if r.learn(vain, 0); r.proved() != (i == 0) {
			t.Fatalf("after %d in vain: proved %v", i+1, r.proved())
		}
		if pause := time.Duration(float64(work) / keptShare); i == 0 && (!r.on(100<<20, 0, pause-1) || r.on(100<<20, 0, pause) || r.length != 0) {
			t.Errorf("rests until %v, want %v", r.until, pause)
		}
	}
	if r.learn(good, 0); !r.proved() || r.length != 0 {
		t.Errorf("after a good one: %+v", r)
	}
}

// Each cycle runs the cleanups of our own sentinels, which tell nothing of the program.
func TestOurOwnCleanupsDoNotCount(t *testing.T) {
	n := uint64(sentinels.Load())
	before := pending{finalizers: 7, finalized: 7, cycles: 3}
	after := pending{finalized: 7 + 5, cleaned: 2 * n, cycles: 5}
	if got := after.ran(before); got != 5 {
		t.Errorf("%d of the program's have run in two cycles beside %d collectors, want 5", got, n)
	}
}

// While cycles are worth it, a gauge that stands still asks, too.
func TestGaugeThatStandsStillAsks(t *testing.T) {
	var f foreign
	f.bytes.Store(64 << 20)
	c, g := watched(t, &f, "host")
	waitFor(t, 20*time.Second, func() bool {
		for range 8 {
			f.alloc(1 << 20)
		}
		g.Look()
		return proved(g)
	})
	before := c.Stats().Cycles[policy.TriggerPolicy]
	waitFor(t, 20*time.Second, func() bool { return c.Stats().Cycles[policy.TriggerPolicy] > before && g.Resting() > 0 })
}

func proved(g *Gauge) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.backoff.proved()
}

// TestWatchBesideClose: gauges come while the collector closes.
func TestWatchBesideClose(t *testing.T) {
	for range 300 {
		c, err := New(Config{Policy: policy.Spec{}.New()})
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		for range 4 {
			done.Add(1)
			go func() {
				defer done.Done()
				Watch(c, func() int64 { return 1 }).Close()
			}()
		}
		c.Close()
		done.Wait()
	}
}

// TestAGaugeBelowZero reads as 0, and the policy goes on.
func TestAGaugeBelowZero(t *testing.T) {
	for _, rule := range []string{HostPolicy, DefaultPolicy, "sqrt", "growth:1"} {
		var bytes atomic.Int64
		c := embed(t, Config{Policy: policy.MustParse(rule).New()})
		g := Watch(c, bytes.Load)
		for _, level := range []int64{1 << 30, -1 << 30, math.MinInt64, 1 << 30, math.MaxInt64, 1 << 30} {
			bytes.Store(level)
			if got := g.Look(); got < 0 || got > MaxBytes {
				t.Errorf("%s: reads %d", rule, got)
			}
		}
		c.Collect(policy.TriggerExplicit)
		g.Look()
		g.Close()
		if err := c.Err(); err != nil || c.Policy() == "never" {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestAGaugeThatPanics is off, and the program goes on.
func TestAGaugeThatPanics(t *testing.T) {
	var calls atomic.Int64
	c := embed(t, Config{Policy: policy.Spec{}.New()})
	g := Watch(c, func() int64 {
		n := calls.Add(1)
		if n > 2 {
			panic("the library is gone")
		}
		return []int64{100, 40}[n-1]
	})
	waitFor(t, 20*time.Second, func() bool { return c.Err() != nil })
	g.SetLimit(5)
	if got := g.Look(); got != 40 || calls.Load() != 3 || !strings.Contains(c.Err().Error(), "the library is gone") {
		t.Errorf("reads %d after %d calls: %v", got, calls.Load(), c.Err())
	}
	c.Collect(policy.TriggerExplicit)
	g.Close()
}

// While finalizers wait for a lock no cycle is asked for; they have run once it is released, and then one is.
func TestNoCycleWhileFinalizersAreDue(t *testing.T) {
	quiet(t)
	var f foreign
	var lock sync.Mutex
	lock.Lock()
	for range 50 {
		h := new(handle)
		runtime.SetFinalizer(h, func(*handle) {
			lock.Lock()
			defer lock.Unlock()
		})
	}
	runtime.GC()
	waitFor(t, 20*time.Second, func() bool { return readPending().waiting() || readPending() == pending{cycles: readPending().cycles} })
	if !readPending().waiting() {
		lock.Unlock()
		t.Skip("this runtime does not say what is due")
	}
	c, g := watched(t, &f, "growth:min=1MiB")
	for range 200 {
		f.alloc(1 << 20)
		g.Look()
		time.Sleep(time.Millisecond) // a cycle is counted once it has ended
	}
	asked := c.Stats()
	c.Collect(policy.TriggerExplicit) // the program's own is run all the same, and counted
	overtaken := c.Stats().Overtaken
	other := newCollector(t, Config{Policy: policy.Spec{}.New()})
	other.own()
	if other.Collect(policy.TriggerExplicit); other.Stats().Overtaken != 0 {
		t.Error("a cycle that is for no gauge has overtaken finalizers")
	}
	lock.Unlock()
	if n := asked.Cycles[policy.TriggerPolicy]; n != 0 || asked.Overtaken != 0 || overtaken != 1 {
		t.Errorf("%d cycles while finalizers were due; %d and then %d counted, want 0 and 1", n, asked.Overtaken, overtaken)
	}
	waitFor(t, 20*time.Second, func() bool {
		f.alloc(1 << 20)
		g.Look()
		return c.Stats().Cycles[policy.TriggerPolicy] > 0
	})
}

// A finalizer that blocks is told after a time, and stops nothing else.
func TestDue(t *testing.T) {
	var d due
	queued := func(n, ran uint64) pending { return pending{finalizers: n, finalized: ran} }
	for i, step := range []struct {
		p           pending
		at          time.Duration
		wait, stuck bool
	}{
		{queued(0, 0), 1, false, false},
		{queued(5, 0), 2, true, false},
		{queued(5, 1), 11, true, false},
		{queued(9, 1), 20, true, false},
		{queued(9, 1), 21, false, true},
		{queued(9, 2), 22, true, false},
		{queued(9, 9), 100, false, false},
		{queued(10, 9), 109, true, false},
	} {
		if wait := d.wait(step.p, step.at*time.Second); wait != step.wait || d.stuck != step.stuck {
			t.Errorf("step %d: waits %v, stuck %v", i, wait, d.stuck)
		}
	}
	d = due{}
	both := func(ran uint64) pending { return pending{finalizers: 9, finalized: ran, cleanups: 9, cleaned: ran} }
	d.wait(both(1), time.Second)
	d.wait(both(2), 9*time.Second)
	if !d.wait(both(2), 12*time.Second) || d.stuck {
		t.Error("finalizers and cleanups that run in turn are taken for stuck")
	}
}

// TestCapsOfGauges: a gauge that has much to ask for asks no sooner after a cycle than its cap allows, and then it does.
func TestCapsOfGauges(t *testing.T) {
	for _, most := range []float64{0, 4} { // 0 is the default
		var bytes, asked atomic.Int64
		e := newPuppet()
		caps := Caps{Gauges: most}
		if err := caps.check(); err != nil {
			t.Fatal(err)
		}
		c := newOn(e, Config{Caps: caps, Idle: -1}, &scripted{decide: func(policy.Point) policy.Decision {
			asked.Add(1)
			return policy.Decision{}
		}})
		g := Watch(c, func() int64 { return bytes.Add(1 << 30) })
		e.pass(time.Hour)
		g.mu.Lock()
		g.began, g.outcome = e.now(), outcome{} // a cycle has begun, and been judged
		g.mu.Unlock()
		period := time.Second / 100
		if most > 0 {
			period = time.Duration(float64(time.Second) / most)
		}
		e.pass(period - 1)
		before := asked.Load()
		for range 10 {
			g.Look()
		}
		if n := asked.Load() - before; n != 0 {
			t.Errorf("Gauges: %v: asks %d times within %v", most, n, period)
		}
		e.pass(1)
		waitFor(t, 20*time.Second, func() bool { // finalizers of others may be due
			g.Look()
			return asked.Load() > before
		})
		g.Close()
		c.Close()
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(-1)} {
		if err := (&Caps{Gauges: bad}).check(); err == nil {
			t.Errorf("Caps.Gauges of %v is no error", bad)
		}
	}
}

// TestWhatCyclesBringBack walks three cycles of a gauge by hand, which nobody looks at but the test. What the program frees by itself
// between two cycles it is taken to free beside a cycle, too; what has fallen before a cycle is none of its yield.
func TestWhatCyclesBringBack(t *testing.T) {
	e := newPuppet()
	c := newOn(e, Config{Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	level := int64(1000)
	g := &Gauge{c: c, read: func() int64 { return level }, low: level, stop: make(chan struct{})}
	g.level.Store(level)
	g.grown.Store(level)
	g.gate = c.NewGate(g)
	walk := (*gaugeWalk)(g)
	for i, step := range []struct {
		before       []int64       // levels up to the mark
		passed       time.Duration // meanwhile
		grown        int64         // since the lowest of them
		after        []int64       // levels from then on
		beside       time.Duration // that this takes
		credit, rest int64         // credited at the mark's end, and once it is judged
	}{
		{[]int64{900, 1500}, 10 * ms, 600, []int64{400}, 5 * ms, 1050, 1050},   // 100 in 10 ms fall by themselves, 50 of 1100
		{[]int64{700}, 10 * ms, 300, []int64{500, 350, 480}, 6 * ms, 350, 350}, // nothing fell before
		{[]int64{580}, 10 * ms, 100, []int64{500}, 5 * ms, 80, 80},
		{[]int64{300}, 10 * ms, 0, []int64{200}, 5 * ms, 0, 0}, // 200 in 10 ms, 100 in 5: no more than that
		{[]int64{250}, 20 * ms, 50, []int64{0}, 5 * ms, 250, 250},
	} {
		for _, level = range step.before {
			g.mu.Lock()
			g.see()
			g.mu.Unlock()
		}
		e.pass(step.passed)
		if walk.promoteAll(); g.outcome.grown != step.grown {
			t.Errorf("cycle %d: grown by %d, want %d", i, g.outcome.grown, step.grown)
		}
		walk.begin(true)
		was := g.credited
		for _, level = range step.after {
			e.pass(step.beside / time.Duration(len(step.after)))
			g.mu.Lock()
			g.see()
			g.mu.Unlock()
		}
		if credit := walk.credit(); credit != step.credit {
			t.Errorf("cycle %d: %d credited, want %d", i, credit, step.credit)
		}
		g.mu.Lock()
		g.judge()
		g.mu.Unlock()
		if walk.credit(); g.credited-was != step.rest || g.wrong() != "" {
			t.Errorf("cycle %d: %d credited in all, want %d: %s", i, g.credited-was, step.rest, g.wrong())
		}
	}
}

// TestAGaugeIsNoProgramAtWork: what it reads is not what decides whether the program is quiet.
func TestAGaugeIsNoProgramAtWork(t *testing.T) {
	c := embed(t, Config{Policy: policy.Spec{}.New(), Idle: -1})
	var bytes atomic.Int64
	g := Watch(c, func() int64 { return bytes.Add(1 << 20) })
	defer g.Close()
	c.Account(10)
	g.Look()
	c.mu.Lock()
	gross, live := c.gross()
	c.mu.Unlock()
	if c.Account(-10); gross != 10 || live != 10 {
		t.Errorf("%d bytes so far, %d live: want 10 and 10", gross, live)
	}
}
