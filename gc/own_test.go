package gc

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A tomb is a registry for what was given to Own, whose dead a test puts in.
type tomb struct {
	o    *ownership
	dead int // objects of one byte
}

func (b *tomb) promoteAll() {}
func (b *tomb) Len() int    { return 0 }

func (b *tomb) walk(r *collection) {
	if b.dead > 0 {
		r.found(&batch{gate: b.o.gate, dead: b, n: b.dead})
	}
	b.dead = 0
}

func (b *tomb) bytes(int) int64 { return 1 }
func (b *tomb) give(int)        { b.o.giveBack(1) }

// owning is a collector on a puppet, whose memory of Own a test sets. Its limit is 100.
func owning(t *testing.T) (*Collector, *puppet, *tomb) {
	e := newPuppet()
	c := newOn(e, Config{Caps: uncapped, Idle: -1, Limit: 100}, policy.Spec{}.New())
	patient(c)
	t.Cleanup(func() { atRest(t, c); c.Close() })
	b := &tomb{o: c.own()}
	c.addRegistry(b)
	return c, e, b
}

// adds has Own add 10 bytes, and returns how many cycles that took.
func (e *puppet) adds(o *ownership) (cycles int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.add(10)
	}()
	for {
		select {
		case end := <-e.marks:
			cycles++
			end <- 0
		case <-done:
			return cycles
		}
	}
}

// TestOwnAtItsLimitWaitsForTheCycleUnderWay, and starts none of its own if that one
// makes room.
func TestOwnAtItsLimitWaitsForTheCycleUnderWay(t *testing.T) {
	c, e, b := owning(t)
	b.o.take(100)
	b.dead = 40
	c.mu.Lock()
	c.begin(policy.TriggerExplicit, policy.Decision{Action: policy.Overlap}, b.o.gate, 0)
	c.mu.Unlock()
	end := <-e.marks
	more := make(chan int)
	go func() { more <- e.adds(b.o) }()
	waitFor(t, 20*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.current.Load().held != noOne
	})
	end <- 0
	if n := <-more; n != 0 || b.o.live.Load() != 70 {
		t.Errorf("%d cycles beside the one that was under way; %d bytes are live", n, b.o.live.Load())
	}
}

// TestOwnTriesAgainOnceACycleHasMadeRoom: what was in vain once is not in vain for ever.
func TestOwnTriesAgainOnceACycleHasMadeRoom(t *testing.T) {
	_, e, b := owning(t)
	for i, step := range []struct {
		live int64 // when 10 more come
		dead int   // of it
		want int   // cycles
	}{
		{90, 0, 0},   // they fit
		{100, 0, 1},  // in vain
		{100, 50, 0}, // so that it is not tried again ...
		{113, 50, 1}, // ... before an eighth of the limit has come on top
		{100, 50, 1}, // that one has made room
		{100, 50, 1},
		{91, 1, 1},   // just enough room
		{91, 0, 1},   // in vain
		{101, 0, 0},  //
		{102, 0, 0},  //
		{103, 0, 1},  // 12 more
		{114, 0, 0},  //
		{115, 25, 1}, // one more, which has made room
		{100, 9, 1},  // a byte too little
		{100, 9, 0},
	} {
		b.o.take(step.live - b.o.live.Load())
		b.dead = step.dead
		if got := e.adds(b.o); got != step.want {
			t.Errorf("step %d: %d cycles, want %d", i, got, step.want)
		}
	}
}

// TestAPointHasWhatIsAskedForAndTheLimitOfNow: what Resize adds, and what SetLimit has set.
func TestAPointHasWhatIsAskedForAndTheLimitOfNow(t *testing.T) {
	var seen []policy.Point
	c := newOn(newPuppet(), Config{Caps: uncapped, Idle: -1, Limit: 1000}, &scripted{decide: func(p policy.Point) policy.Decision {
		seen = append(seen, p)
		return policy.Decision{}
	}})
	t.Cleanup(c.Close)
	owner := new(thing)
	h := ownFunc(c, owner, 100, func() {})
	h.Resize(130)
	h.Resize(20)
	c.SetLimit(500)
	h.Resize(25)
	var got [][3]int64
	for _, p := range seen {
		got = append(got, [3]int64{p.Sample.Live, p.Request, p.Sample.Limit})
	}
	if want := [][3]int64{{0, 100, 1000}, {100, 30, 1000}, {20, 5, 500}}; !slices.Equal(got, want) {
		t.Errorf("live, request and limit were %v, want %v", got, want)
	}
	h.Release()
	runtime.KeepAlive(owner)
}

// TestCyclesCostWhatTheyFindAndWhatTheyKeep: both are tracked when the cycle begins.
func TestCyclesCostWhatTheyFindAndWhatTheyKeep(t *testing.T) {
	c, e, b := owning(t)
	b.o.take(90)
	b.dead = 90
	for range 2 {
		go func() {
			end := <-e.marks
			e.pass(100 * time.Microsecond)
			end <- 0
		}()
		c.Collect(policy.TriggerExplicit)
	}
	want := policy.NewExpectation(1)
	want.Learn(policy.Measured{Length: 100 * time.Microsecond, Processors: 1, Tracked: 90})
	want.Learn(policy.Measured{Length: 100 * time.Microsecond, Processors: 1})
	want.See(0, 0)
	if got := c.Stats().Cost; got != want.Cost {
		t.Errorf("the next cycle is expected to take %v, want %v", got, want.Cost)
	}
}

// TestAccountIsAskedAboutAndRecorded: what is taken back is taken from the oldest, which
// is recorded as free once all of it is.
func TestAccountIsAskedAboutAndRecorded(t *testing.T) {
	var asked []int64
	to := &recording{made: time.Now()}
	c := newOn(newPuppet(), Config{Caps: uncapped, Idle: -1, Recorder: to}, &scripted{decide: func(p policy.Point) policy.Decision {
		asked = append(asked, p.Request)
		return policy.Decision{}
	}})
	t.Cleanup(c.Close)
	for _, bytes := range []int64{10, 20, -5, -4, -1, -19, 7, -1, -7} {
		c.Account(bytes)
	}
	if want := []int64{10, 20, 7}; !slices.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
	var got []int64 // bytes of what was allocated, and below 0 of what was freed
	ids := map[uint64]int64{}
	for _, e := range to.Events {
		switch e.Kind {
		case trace.Alloc:
			got, ids[e.ID] = append(got, e.Bytes), e.Bytes
		case trace.Free:
			if got = append(got, -e.Bytes); ids[e.ID] != e.Bytes {
				t.Errorf("%d bytes are free of an object of %d", e.Bytes, ids[e.ID])
			}
			delete(ids, e.ID)
		}
	}
	if want := []int64{10, 20, -10, 7, -20, -7}; !slices.Equal(got, want) || len(ids) != 0 {
		t.Errorf("recorded %v, want %v", got, want)
	}
}

// TestARecordingHasWhatIsCounted: after each move the objects of a recording are what is counted, and the part of the oldest that is taken
// back already.
func TestARecordingHasWhatIsCounted(t *testing.T) {
	schedules(t, 10, func(d *draw) {
		to := &recording{made: time.Now()}
		c := newOn(newPuppet(), Config{Caps: uncapped, Idle: -1, Recorder: to}, policy.Spec{}.New())
		defer c.Close()
		a := &c.own().accounted
		recorded, seen := int64(0), 0
		for range 100 {
			c.awake.Store(d.rng.IntN(2) == 0)
			if live := a.live.Load(); d.rng.IntN(2) == 0 {
				c.Account(1 + d.rng.Int64N(100))
			} else if live > 0 {
				c.Account(-1 - d.rng.Int64N(live))
			}
			for ; seen < len(to.Events); seen++ {
				switch e := to.Events[seen]; e.Kind {
				case trace.Alloc:
					recorded += e.Bytes
				case trace.Free:
					recorded -= e.Bytes
				}
			}
			if live := a.live.Load(); recorded-a.log.back != live {
				d.Fatalf("%d bytes recorded, %d of them taken back, and %d are counted", recorded, a.log.back, live)
			}
		}
	})
}

// TestACrowdedLimitRests: at a limit of 1,000 bytes that were all live, no cycle is asked for soon after one that has left more than 7/8 of it.
func TestACrowdedLimitRests(t *testing.T) {
	for dead, asks := range map[int]bool{900: true, 130: true, 120: false, 20: false} {
		e := newPuppet()
		c := newOn(e, Config{Caps: usualCaps(), Idle: -1, Limit: 1000}, policy.Spec{}.New())
		patient(c)
		b := &tomb{o: c.own(), dead: dead}
		c.addRegistry(b)
		b.o.take(1000)
		c.mu.Lock()
		c.begin(policy.TriggerExplicit, policy.Decision{Action: policy.Overlap}, b.o.gate, 0)
		c.mu.Unlock()
		end := <-e.marks
		e.pass(10 * ms)
		end <- 0
		c.Wait()
		if got := c.throttle.mayAsk(c.Now(), b.o.gate, b.o.live.Load()); got != asks {
			t.Errorf("after a cycle that freed %d of 1000 bytes: asks %v, want %v", dead, got, asks)
		}
		c.Close()
	}
}

// TestACallerOwesItsShareOfTheCycle: of a cycle of 1 ms that began with half of the limit
// live, one byte in 50 is 20 us; what is too short to be worth a timer stays owed.
func TestACallerOwesItsShareOfTheCycle(t *testing.T) {
	c, _, b := owning(t)
	r := c.newCollection(policy.TriggerPolicy, policy.Decision{Action: policy.Overlap}, b.o.gate)
	r.live, r.expected = 50, time.Millisecond
	for i, want := range []time.Duration{20, 60} {
		if b.o.assist(r, int64(1+i)); time.Duration(b.o.owed.Load()) != want*time.Microsecond {
			t.Errorf("%v are owed, want %v us", time.Duration(b.o.owed.Load()), int64(want))
		}
	}
	r.gate = nil // another memory's
	if b.o.assist(r, 1); b.o.owed.Load() != 60_000 {
		t.Errorf("%v are owed to a cycle for another memory", time.Duration(b.o.owed.Load()))
	}
}

// TestWhatDiesBetweenAllocationsIsAskedFor: after a cycle that freed something the policy is asked again,
// although nothing is allocated.
func TestWhatDiesBetweenAllocationsIsAskedFor(t *testing.T) {
	c, err := New(Config{Policy: &scripted{decide: func(at policy.Point) policy.Decision {
		if at.Request == 0 && at.Sample.Live > 0 {
			return policy.Decision{Action: policy.Overlap}
		}
		return policy.Decision{}
	}}, Idle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	patient(c) // who frees nothing in time is not asked again
	owners := []*[4]*int{new([4]*int), new([4]*int)}
	for _, owner := range owners {
		Own(c, owner, 1<<20, func(int) {}, 0)
	}
	owners[0] = nil
	c.Collect(policy.TriggerPolicy)
	runtime.KeepAlive(owners)
	owners = nil
	waitFor(t, 20*time.Second, func() bool { return c.Stats().Freed == 2<<20 })
}

// TestWhatCameBeforeARecordingIsNotInIt, and what is taken back of that is taken from nothing else.
func TestWhatCameBeforeARecordingIsNotInIt(t *testing.T) {
	e, to := newPuppet(), &recording{}
	c := newOn(e, Config{Caps: uncapped, Idle: -1, Space: pressure.Pinned}, policy.Spec{}.New())
	t.Cleanup(c.Close)
	a := &c.own().accounted
	c.Account(30)
	if len(a.log.all) > 0 {
		t.Error("an object is kept for a recording that is off")
	}
	c.SetRecorder(worldClock{to, e})
	c.Account(-10)
	c.Account(5)
	c.Account(-4)
	if n := len(to.Events); n != 1 {
		t.Errorf("recorded %+v, want an object that lives", to.Events)
	}
	c.Account(-1)
	id := uint64(0xff)<<56 | 1
	want := []trace.Event{
		{Time: int64(time.Hour), Kind: trace.Alloc, Space: pressure.Pinned, ID: id, Bytes: 5}, {Time: int64(time.Hour), Kind: trace.Free, Space: pressure.Pinned, ID: id, Bytes: 5, Aux: trace.FreeExplicit},
	}
	for i := range to.Events {
		if to.Events[i].Kind == trace.Alloc {
			if site := to.Trace.Label(to.Events[i]); !strings.Contains(site, t.Name()) {
				t.Errorf("it was counted at %s", site)
			}
			to.Events[i].Aux = 0
		}
	}
	if !slices.Equal(to.Events, want) {
		t.Errorf("recorded %+v, want %+v", to.Events, want)
	}
}

// TestOwnersAreRecorded under identities of their own: what they hold, that it becomes more or less, and that it comes back, by hand or by a cycle.
func TestOwnersAreRecorded(t *testing.T) {
	quiet(t)
	to := &recording{made: time.Now()}
	c := newCollector(t, Config{Policy: policy.Spec{}.New(), Recorder: to, Space: pressure.Device(3)})
	owner, other := new(thing), new(thing)
	first, second := Own(c, owner, 10, func(int) {}, 0), Own(c, other, 20, func(string) {}, "")
	first.Resize(50)
	first.Resize(7)
	first.Release()
	first.Release()
	first.Resize(8)
	runtime.KeepAlive(owner)
	runtime.KeepAlive(other)
	other = nil
	c.Collect(policy.TriggerExplicit)
	c.SetRecorder(nil)
	type move struct {
		bytes int64 // below 0: they came back
		why   uint32
		of    uint64
	}
	var got []move
	for _, e := range to.Events {
		if e.Space != pressure.Device(3) && e.Kind != trace.Cycle {
			t.Errorf("recorded %+v", e)
		}
		switch e.Kind {
		case trace.Alloc:
			got = append(got, move{e.Bytes, 0, e.ID})
			if site := to.Trace.Label(e); !strings.Contains(site, t.Name()) {
				t.Errorf("it came at %s", site)
			}
		case trace.Free:
			got = append(got, move{-e.Bytes, e.Aux, e.ID})
		}
	}
	a, b := cleanupsOf[int](c.own()).id(first.slot), cleanupsOf[string](c.own()).id(second.slot)
	want := []move{
		{10, 0, a}, {20, 0, b}, {-10, trace.FreeExplicit, a}, {50, 0, a}, {-50, trace.FreeExplicit, a}, {7, 0, a}, {-7, trace.FreeExplicit, a}, {-20, trace.FreeCycle, b},
	}
	if !slices.Equal(got, want) || a == b || a>>63 != 1 || b>>63 != 1 || a>>56 == 0xff {
		t.Errorf("recorded %+v, want %+v", got, want)
	}
}

// TestKindsOfOwners: one for each type of argument, whoever asks for it, and only Count's is counted.
func TestKindsOfOwners(t *testing.T) {
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	o := c.own()
	a, b, n := cleanupsOf[int](o), cleanupsOf[*string](o), cleanupsOf[countOnly](o)
	if addCleanups[int](o) != a || addCleanups[*string](o) != b || addCleanups[countOnly](o) != n || cleanupsOf[*string](o) != b || len(*o.kinds.Load()) != 3 {
		t.Error("a type has two registries")
	}
	if a.number != 0 || b.number != 1 || n.number != 2 || a.counted || b.counted || !n.counted || a.large != 4096 || len(a.pointers) != 0 || len(b.pointers) != 1 {
		t.Errorf("%d, %d, %d; counted %v, %v, %v; large from %d", a.number, b.number, n.number, a.counted, b.counted, n.counted, a.large)
	}
	if len(c.allRegistries()) != 4 { // and what is accounted
		t.Errorf("%d registries", len(c.allRegistries()))
	}
	if (Handle{}).Release() || (Handle{}).Resize(5) {
		t.Error("the zero handle owns something")
	}
}

// TestResizeAsksForGrowthAlone.
func TestResizeAsksForGrowthAlone(t *testing.T) {
	asked := 0
	c := newOn(newPuppet(), Config{Caps: uncapped, Idle: -1}, &scripted{decide: func(policy.Point) policy.Decision { asked++; return policy.Decision{} }})
	t.Cleanup(c.Close)
	owner := new(thing)
	h := ownFunc(c, owner, 10, func() {})
	for _, step := range []struct {
		bytes        int64
		asked        int
		live, handed int64
	}{{10, 1, 10, 10}, {9, 1, 9, 10}, {11, 2, 11, 12}, {0, 2, 0, 12}, {0, 2, 0, 12}, {1, 3, 1, 13}} {
		if h.Resize(step.bytes); asked != step.asked || c.own().live.Load() != step.live || c.own().Allocated() != step.handed {
			t.Errorf("resized to %d: asked %d times, %d live, %d handed out, want %+v", step.bytes, asked, c.own().live.Load(), c.own().Allocated(), step)
		}
	}
	h.Release()
	runtime.KeepAlive(owner)
}

// TestACollectorThatTracksSomethingStaysAlive, and goes when it tracks nothing.
func TestACollectorThatTracksSomethingStaysAlive(t *testing.T) {
	c := newCollector(t, Config{Policy: policy.Spec{}.New()})
	lives := func() bool { _, ok := alive.Load(c); return ok }
	if c.own(); lives() || c.awake.Load() {
		t.Error("it lives before it tracks anything")
	}
	owner := new(thing)
	h := ownFunc(c, owner, 10, func() {})
	if !lives() || !c.awake.Load() {
		t.Error("it does not live when it tracks something")
	}
	if c.letGo(); !lives() || !c.awake.Load() {
		t.Error("it is let go while it tracks something")
	}
	h.Release()
	if c.letGo(); lives() || c.awake.Load() {
		t.Error("it is not let go once it tracks nothing")
	}
	runtime.KeepAlive(owner)
	if c.Account(1); !lives() || !c.awake.Load() {
		t.Error("it does not live when something is accounted")
	}
	c.Account(-1)
}
