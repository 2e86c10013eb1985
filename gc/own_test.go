package gc

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
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
		o.adding(10)
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
	if n := <-more; n != 0 || b.o.live.Load() != 60 {
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
