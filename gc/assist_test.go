package gc

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A plainBudget is the time for which callers may be held: what comes in, up to a bound, and is spent once by those who wait together.
type plainBudget struct {
	Caps
	saved, filled, until time.Duration
}

func (b *plainBudget) hold(now, want time.Duration) time.Duration {
	second := b.Held * float64(time.Second)
	b.saved = min(b.saved+time.Duration(0.5*b.Held*float64(now-b.filled)), time.Duration(0.3*second))
	b.filled = now
	want = min(want, b.Assist, time.Duration(0.2*second))
	from := max(now, b.until) // others wait until then in any case
	if longer := min(now+want-from, b.saved); longer >= leastAssist {
		b.saved -= longer
		b.until = from + longer
	}
	return max(0, min(want, b.until-now))
}

// TestCallersAreHeldAsTheCapsAllow, whatever they ask for, alone or together.
func TestCallersAreHeldAsTheCapsAllow(t *testing.T) {
	schedules(t, 200, func(d *draw) {
		caps := Caps{Held: oneOf(d, 0.05, 0.25, 1), Assist: oneOf(d, ms, 10*ms)}
		got, want, now := throttle{Caps: caps}, plainBudget{Caps: caps}, time.Second
		for i := range 100 {
			now += time.Duration(oneOf(d, 0, between(d, 0, int64(ms)), between(d, 0, int64(100*ms))))
			ask := oneOf(d, -ms, 0, leastAssist-1, leastAssist, 2*ms, time.Hour)
			if a, b := got.hold(now, ask), want.hold(now, ask); a != b || got.saved != want.saved || got.until != want.until {
				d.Fatalf("call %d, for %v: held for %v, want %v; %+v, want %+v", i, ask, a, b, &got, want)
			}
			if left := want.until - now; between(d, 0, 3) == 0 { // the cycle has ended
				if got.letGo(now); left > 0 {
					want.saved, want.until = want.saved+left, now
				}
			}
		}
	})
}

// TestAnAssistIsItsShareOfTheCycle: as long as the cycle takes for each time that the room is filled, but never while less is used up than
// time has gone by; what is too short for a timer stays owed.
func TestAnAssistIsItsShareOfTheCycle(t *testing.T) {
	schedules(t, 20, func(d *draw) {
		c, e, b := owning(d.T)
		c.throttle.Caps = Caps{Held: 1, Assist: ms}
		e.pass(time.Second)
		limit, began := oneOf(d, int64(0), 1000, 64_000), e.now()
		c.SetLimit(limit)
		r := c.newCollection(policy.TriggerPolicy, policy.Decision{Action: policy.Overlap}, b.o.gate)
		r.begin, r.live, r.expected = began, oneOf(d, int64(0), 500, 1000, 63_900), oneOf(d, ms, 2*ms)
		b.o.take(r.live)
		room := max(limit-r.live, limit/64)
		budget, owed, held, pauses := plainBudget{Caps: c.throttle.Caps}, time.Duration(0), noOne, uint64(0)
		for range 20 {
			e.pass(oneOf(d, 0, 10*time.Microsecond, 300*time.Microsecond))
			now, bytes := e.now(), oneOf(d, int64(1), 20, 100, 5000)
			b.o.take(bytes)
			b.o.assist(r, bytes)
			if limit > 0 {
				owed += time.Duration(min(float64(bytes)/float64(room), 1) * float64(r.expected))
			}
			if owed >= leastAssist {
				used := b.o.live.Load() - r.live
				due := began + time.Duration(float64(used)/float64(room)*float64(r.expected))
				if granted := budget.hold(now, min(owed, due-now)); granted >= leastAssist {
					held = min(held, now)
					pauses++
				}
				owed = 0
			}
			total := uint64(0)
			for _, n := range c.Stats().Pauses {
				total += n
			}
			if time.Duration(b.o.owed.Load()) != owed || c.throttle.until != budget.until || r.held != held || total != pauses {
				d.Fatalf("limit %d: %v owed, held until %v, %d times, from %v: want %v, %v, %d, %v", limit, time.Duration(b.o.owed.Load()),
					c.throttle.until, total, r.held, owed, budget.until, pauses, held)
			}
		}
		b.o.giveBack(b.o.live.Load())
	})
}

// TestWhoGivesWayIsNotExposed: the first to come by is held where no processor is free, and who is held because of that is no pause of
// the cycle. An end of the cycle lets it go, and leaves the rest of its time to others.
func TestWhoGivesWayIsNotExposed(t *testing.T) {
	e := newPuppet()
	e.busy = true
	c := newOn(e, Config{Caps: Caps{Held: 1, Assist: time.Hour}, Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	e.pass(time.Hour)
	now := e.now()
	r := c.newCollection(policy.TriggerPolicy, policy.Decision{Action: policy.Overlap}, c.own().gate)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.giveWay(r)
	}()
	most := time.Second / 5 // of a second
	waitFor(t, 20*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.throttle.until == now+most
	})
	e.pass(ms)
	close(r.done)
	<-done
	if c.throttle.until != now+ms || c.throttle.saved != 3*time.Second/10-ms || c.Stats().MaxPause != ms || r.held != noOne {
		t.Errorf("held until %v, %v saved, paused %v, exposed from %v", c.throttle.until, c.throttle.saved, c.Stats().MaxPause, r.held)
	}
	for range 20 {
		c.giveWay(r)
	}
	held := uint64(0)
	for _, n := range c.Stats().Pauses {
		held += n
	}
	if held != 1 || c.Stats().Exposed != ms {
		t.Errorf("%d are held, %v in all", held, c.Stats().Exposed)
	}
}

// TestAtItsLimitOwnAsksForACycleBesideIt, unless one runs, or has to rest.
func TestAtItsLimitOwnAsksForACycleBesideIt(t *testing.T) {
	for name, test := range map[string]struct {
		live   int64
		set    func(*Collector, *ownership)
		begins bool
	}{
		"full":             {91, func(*Collector, *ownership) {}, true},
		"just fits":        {90, func(*Collector, *ownership) {}, false},
		"no limit":         {91, func(_ *Collector, o *ownership) { o.limit.Store(0) }, false},
		"backs off":        {91, func(c *Collector, o *ownership) { c.throttle.pause.Store(&pause{time.Hour, o.gate, 50, 200}) }, false},
		"it was another":   {91, func(c *Collector, o *ownership) { c.throttle.pause.Store(&pause{time.Hour, o.gate, 95, 200}) }, true},
		"too much time":    {91, func(c *Collector, o *ownership) { c.throttle.next = time.Hour }, false},
		"time for another": {91, func(c *Collector, o *ownership) { c.throttle.next = time.Second }, true},
		"closed":           {91, func(c *Collector, o *ownership) { c.closed = true }, false},
	} {
		e := newPuppet()
		e.pass(time.Second)
		c := newOn(e, Config{Caps: Caps{Cycles: 0.5, Held: 1, Assist: time.Nanosecond}, Idle: -1, Limit: 100}, policy.Spec{}.New())
		o := c.own()
		o.take(test.live)
		o.gate.wake.Store(1 << 60)
		test.set(c, o)
		o.add(10)
		r := c.current.Load()
		if (r != nil) != test.begins {
			t.Errorf("%s: a cycle begins: %v", name, r != nil)
		}
		if r != nil {
			if r.trigger != policy.TriggerRefusal || r.action != policy.Overlap || r.gate != o.gate || r.live != test.live || r.allocated != test.live || r.begin != time.Second {
				t.Errorf("%s: %+v", name, r)
			}
			o.add(10) // one at a time
			(<-e.marks) <- 0
			<-r.done
		}
		c.closed = false
		c.Close()
	}
}
