package gc

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// TestQuietIsNothingCountedBetweenTwoChecks walks the checks by hand: a quiet program gets one cycle, and then sleeps until it counts again.
func TestQuietIsNothingCountedBetweenTwoChecks(t *testing.T) {
	for _, idle := range []struct{ set, every time.Duration }{{0, time.Second / 2}, {time.Hour, time.Hour / 2}, {-1, 0}, {-time.Hour, 0}} {
		c := newOn(newPuppet(), Config{Idle: idle.set}, policy.Spec{}.New())
		if c.idler.every != idle.every {
			t.Errorf("Idle of %v is checked each %v, want %v", idle.set, c.idler.every, idle.every)
		}
		if c.Account(1); (c.idler.timer != nil) != (idle.every > 0) {
			t.Errorf("Idle of %v: a timer runs: %v", idle.set, c.idler.timer != nil)
		}
		c.Close()
	}
	e := newPuppet()
	c := newOn(e, Config{Idle: time.Hour}, &scripted{})
	t.Cleanup(c.Close)
	o := c.own()
	for i, step := range []struct {
		do            func()
		begins, awake bool
	}{
		{func() { o.take(10); c.stayAwake() }, false, true}, // something was counted
		{func() { c.throttle.next = time.Minute }, false, true},
		{func() { c.throttle.next = 0 }, true, true},
		{func() {}, false, false}, // it had its cycle
		{func() { c.stayAwake() }, false, false},
		{func() { o.take(5); c.stayAwake() }, false, true},
		{func() {}, true, true},
		{func() { o.take(5) }, false, true},
		{func() { o.take(7); o.giveBack(o.live.Load()); c.stayAwake() }, false, true}, // something was counted, although nothing is live
		{func() {}, false, false},
		{func() { o.take(5); c.stayAwake() }, false, true},
		{func() { c.SetPolicy(nil) }, false, false},
		{func() { c.SetPolicy(&scripted{}); c.stayAwake() }, true, true},
	} {
		step.do()
		c.checkQuiet()
		r := c.current.Load()
		if (r != nil) != step.begins || c.awake.Load() != step.awake {
			t.Fatalf("step %d: a cycle begins: %v, awake: %v", i, r != nil, c.awake.Load())
		}
		if r != nil {
			if r.trigger != policy.TriggerExplicit || r.action != policy.Overlap || r.reason != "idle" || r.gate != o.gate {
				t.Errorf("step %d: %+v", i, r)
			}
			c.checkQuiet() // none beside it
			c.awake.Store(true)
			(<-e.marks) <- 0
			c.goroutine.Wait()
			c.awake.Store(true) // it tracks nothing, and has been let go
		}
	}
	c.Close()
	c.idler.last = -1
	if c.checkQuiet(); c.idler.last != -1 {
		t.Error("a closed collector checks")
	}
}

// TestWhatIsAskedLater: after a cycle that has freed something of what callers are not held for, and checks that are not off. It ends with the next cycle.
func TestWhatIsAskedLater(t *testing.T) {
	for name, test := range map[string]struct {
		idle time.Duration
		soft bool
		dead int
		want bool
	}{
		"so it is": {time.Hour, true, 5, true}, "off": {-1, true, 5, false}, "a pool": {time.Hour, false, 5, false}, "freed nothing": {time.Hour, true, 0, false},
	} {
		asked := make(chan policy.Point, 100)
		e := newPuppet()
		c := newOn(e, Config{Caps: uncapped, Idle: test.idle}, &scripted{decide: func(p policy.Point) policy.Decision { asked <- p; return policy.Decision{} }})
		patient(c)
		b := &tomb{o: c.own(), dead: test.dead}
		b.o.gate.soft = test.soft
		c.addRegistry(b)
		b.o.take(50)
		go func() { (<-e.marks) <- 0 }()
		began := time.Now()
		c.Collect(policy.TriggerExplicit)
		select {
		case p := <-asked:
			if !test.want || p.Request != 0 || p.Sample.Live != 45 || p.At != policy.Allocation {
				t.Errorf("%s: asked at %+v", name, p)
			}
			for _, wait := range []time.Duration{3, 7} { // twice as long each time
				select {
				case <-asked:
					if past := time.Since(began); past < wait*slice {
						t.Errorf("%s: asked again after %v", name, past)
					}
				case <-time.After(20 * time.Second):
					t.Errorf("%s: asked only once", name)
				}
			}
		case <-time.After(map[bool]time.Duration{true: 20 * time.Second, false: 5 * slice}[test.want]):
			if test.want {
				t.Errorf("%s: not asked", name)
			}
		}
		c.Close()
	}
	asked := 0
	c, e, g := staged(t, &scripted{decide: func(policy.Point) policy.Decision { asked++; return policy.Decision{} }})
	r := c.beginNow(policy.TriggerExplicit, 0)
	end := <-e.marks
	c.askLater(g.gate, time.Microsecond)
	time.Sleep(2 * slice)
	c.mu.Lock()
	if asked > 0 {
		t.Error("asked while a cycle runs")
	}
	c.mu.Unlock()
	end <- 0
	<-r.done
}

// TestASleeperIsWoken by what it tracks next.
func TestASleeperIsWoken(t *testing.T) {
	c := newOn(newPuppet(), Config{Idle: 2 * ms}, policy.Spec{}.New())
	t.Cleanup(c.Close)
	for range 3 {
		c.Account(1)
		waitFor(t, 20*time.Second, func() bool { return !c.awake.Load() })
	}
	c.Account(-3)
}
