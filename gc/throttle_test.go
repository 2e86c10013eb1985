package gc

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// TestNoSecondHoldsCallersForMoreThanTheirShare: callers come at random, alone or
// together, and wait as long as they may.
func TestNoSecondHoldsCallersForMoreThanTheirShare(t *testing.T) {
	const share = 0.05
	rng := rand.New(rand.NewPCG(1, 2))
	p := throttle{Caps: Caps{Held: share, Assist: 10 * ms}}
	var held []bool // by 100 us
	mark := func(from, to time.Duration) {
		for i := int(from / (100 * time.Microsecond)); i < int(to/(100*time.Microsecond)); i++ {
			for len(held) <= i {
				held = append(held, false)
			}
			held[i] = true
		}
	}
	granted := time.Duration(0)
	for now := time.Second; now < 20*time.Second; now += time.Duration(rng.IntN(int(2 * ms))) {
		got := p.hold(now, 10*ms)
		if got > 10*ms || got < 0 {
			t.Fatalf("held for %v", got)
		}
		mark(now, now+got)
		granted += got
	}
	sum, most := 0, 0
	for i, h := range held {
		if h {
			sum++
		}
		if i >= 10_000 && held[i-10_000] {
			sum--
		}
		most = max(most, sum)
	}
	if most > 500 { // of 10,000
		t.Errorf("callers were held for %d of 10,000 in the worst second, want at most 500", most)
	}
	if granted == 0 || most < 200 {
		t.Errorf("callers were held for %v in all, %d of 10,000 in the worst second: the share is not used", granted, most)
	}
}

// TestCyclesThatFreeLittleRestTwiceAsLongEachTime, until one frees much.
func TestCyclesThatFreeLittleRestTwiceAsLongEachTime(t *testing.T) {
	b := throttle{Caps: usualCaps()}
	g := &Gate{source: new(level), liveAfter: 1000}
	now := time.Second
	cycle := policy.Cycle{Start: now, Duration: 10 * ms, Trigger: policy.TriggerPolicy, Freed: 1, LiveAfter: 1000}
	for n, want := range []time.Duration{160 * ms, 320 * ms, 640 * ms, 1280 * ms} {
		b.learn(cycle, g, now, 0, 1000)
		if b.mayAsk(now+want-1, g, 1000) || !b.mayAsk(now+want, g, 1000) || !b.mayAsk(now, g, 874) || b.mayAsk(now, g, 875) || b.mayAsk(now, new(Gate), 800) ||
			b.mayAsk(now, g, 2000+restLeast) || !b.mayAsk(now, g, 2001+restLeast) {
			t.Fatalf("after %d such cycles: %+v, want %v", n+1, b.pause.Load(), want)
		}
	}
	if b.learn(policy.Cycle{Start: now, Duration: 10 * ms, Freed: 500, LiveAfter: 500}, g, now, 0, 500); !b.mayAsk(now, g, 1000) {
		t.Errorf("after one that freed half: %+v", b.pause.Load())
	}
	few := throttle{Caps: usualCaps()}
	for _, freed := range []int64{99, 100} { // of 6,399 and 6,400
		few.learn(policy.Cycle{Start: now, Duration: 10 * ms, Freed: freed, LiveAfter: 6300}, g, now, 0, 6300)
		if (few.futile > 0) != (freed < 100) {
			t.Errorf("after %d bytes of %d: %d in vain", freed, freed+6300, few.futile)
		}
	}
	g.soft = true
	if b.learn(policy.Cycle{Start: now, Duration: 10 * ms, Freed: 500, LiveAfter: 950, Limit: 1000}, g, now, 0, 950); b.mayAsk(now+200*ms-1, g, 950) || !b.mayAsk(now+200*ms, g, 950) {
		t.Errorf("where most of the limit is reachable: %+v, want 200ms", b.pause.Load())
	}
	free := throttle{Caps: Caps{Cycles: 1}}
	if free.learn(cycle, g, now, time.Hour, 1000); !free.mayAsk(now, g, 1000) || !free.mayBegin(now) {
		t.Error("without a cap")
	}
}

// TestCyclesKeepToTheirShareOfTheProcessor: a policy that wants one at every
// point gets them a quarter of the time.
func TestCyclesKeepToTheirShareOfTheProcessor(t *testing.T) {
	e := newPuppet()
	e.each = 3 * ms * time.Duration(runtime.GOMAXPROCS(0)) // each on all cores
	c := newOn(e, Config{Caps: usualCaps(), Idle: -1}, &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: policy.Overlap} }})
	defer c.Close()
	src := new(shrinking)
	src.at.Live, src.at.Limit = 100, 1000
	gate := c.NewGate(src)
	cycles := 0
	for e.now() < time.Second {
		src.allocated += 100
		gate.Allocating(100, 100)
		if r := c.current.Load(); r != nil {
			cycles++
			end := <-e.marks
			e.pass(3 * ms)
			src.at.Live = 0
			end <- 0
			<-r.done // and all of it has been taken in, the rest that follows too
			src.at.Live = 100
			c.throttle.forget() // it is not this cap that is tried
		}
		e.pass(ms / 10)
	}
	if c.Stats().Capped == 0 {
		t.Error("nobody is told that a cap holds cycles back")
	}
	if cycles < 75 || cycles > 90 { // of 3 ms each, in 1 s: a quarter is 83
		t.Errorf("%d cycles, want 83", cycles)
	}
}

// TestWhoAsksGivesWay: on busy processors who asks for a cycle waits for it, since it has no other to run on;
// nobody does where one is free, or where the caps do not allow it. What it adds is no growth since that cycle.
func TestWhoAsksGivesWay(t *testing.T) {
	for _, c := range []struct {
		busy  bool
		saved time.Duration // time for which callers may be held comes in
		want  uint64
	}{{true, time.Second, 1}, {false, time.Second, 0}, {true, 0, 0}} {
		e := newPuppet()
		e.busy = c.busy
		collector := newOn(e, Config{Caps: usualCaps(), Idle: -1}, &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: policy.Overlap} }})
		e.pass(c.saved)
		go func() {
			end := <-e.marks
			waitFor(t, 20*time.Second, func() bool { return collector.current.Load().passed.Load() > 0 }) // the caller has come by
			end <- 0
		}()
		owner := new([4]*int)
		Own(collector, owner, 1<<20, func(int) {}, 0)
		runtime.KeepAlive(owner)
		waitFor(t, 20*time.Second, func() bool { return !collector.running() })
		held := uint64(0)
		for _, n := range collector.Stats().Pauses {
			held += n
		}
		if last := collector.Stats().Last; held != c.want || last.Exposed != 0 || last.LiveAfter != 1<<20 {
			t.Errorf("%+v: %d callers were held, %+v", c, held, last)
		}
		collector.Close()
	}
}

// TestWhoIsHeldStaysOnItsThread, whose arena C's allocator serves it from.
func TestWhoIsHeldStaysOnItsThread(t *testing.T) {
	e := newPuppet()
	e.busy = true
	c := newOn(e, Config{Caps: usualCaps(), Idle: -1}, &scripted{decide: func(policy.Point) policy.Decision { return policy.Decision{Action: policy.Overlap} }})
	defer c.Close()
	buf := make([]byte, 1<<20)
	stayed, begin := false, time.Now()
	for !stayed && time.Since(begin) < 20*time.Second { // a busy machine may come too late to see it
		e.pass(time.Second) // for which callers may be held
		done := make(chan struct{})
		go func() {
			owner := new([4]*int)
			Own(c, owner, 1<<20, func(int) {}, 0)
			runtime.KeepAlive(owner)
			close(done)
		}()
		end := <-e.marks
		for waiting := true; waiting && !stayed; {
			for s := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
				head, frames, _ := strings.Cut(s, "\n")
				stayed = stayed || strings.Contains(frames, ").holdBriefly(") && strings.Contains(head, "locked to thread")
			}
			select {
			case <-done:
				waiting = false
			default:
			}
		}
		end <- 0
		<-done
		waitFor(t, 20*time.Second, func() bool { return !c.running() })
	}
	if !stayed {
		t.Error("a caller that is held may go on on another thread")
	}
}

// TestCyclesInARowOweTogether: whoever asks for them, the next that the policy wants waits for the share of all.
func TestCyclesInARowOweTogether(t *testing.T) {
	b := throttle{Caps: Caps{Cycles: 0.25}}
	g := &Gate{source: new(level)}
	each := 100 * ms * time.Duration(runtime.GOMAXPROCS(0)) // of all processors, which is 400 ms of the share
	for i, next := range []time.Duration{1400, 1800, 2200} {
		c := policy.Cycle{Start: time.Second + time.Duration(i)*100*ms, Duration: 100 * ms, Trigger: policy.TriggerExplicit, Freed: 500, LiveAfter: 500}
		b.learn(c, g, c.Start+c.Duration, each, 500)
		if b.mayBegin(next*ms-1) || !b.mayBegin(next*ms) {
			t.Errorf("after %d cycles the next may begin at %v, want %v ms", i+1, b.next, int64(next))
		}
	}
}

// TestWhatIsNotHeldIsSaved: a caller that went on early leaves the rest of its time to others, once.
func TestWhatIsNotHeldIsSaved(t *testing.T) {
	b := throttle{Caps: Caps{Held: 0.05, Assist: 10 * ms}}
	now := 20 * time.Second
	if got := b.hold(now, 10*ms); got != 10*ms {
		t.Fatalf("held for %v", got)
	}
	saved := b.saved
	b.letGo(now + ms)
	b.letGo(now + ms)
	if got := b.saved - saved; got != 9*ms || b.until != now+ms {
		t.Errorf("%v are saved of 9 that were not used; held until %v", got, b.until)
	}
}

// TestAChangeEndsTheBackOff: after another limit cycles may be worth it again.
func TestAChangeEndsTheBackOff(t *testing.T) {
	c, e, g := staged(t, policy.Spec{}.New())
	c.mu.Lock()
	c.throttle.futile = 5
	c.throttle.pause.Store(&pause{until: time.Hour, gate: g.gate})
	c.mu.Unlock()
	c.SetLimit(500)
	if !c.throttle.mayAsk(e.now(), g.gate, 100) || c.throttle.futile != 0 {
		t.Errorf("backs off after a change: %+v", c.throttle.pause.Load())
	}
}
