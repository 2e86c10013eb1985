package governor_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A looper is a program that allocates in a loop, and takes longer for it beside a cycle.
type looper struct {
	*driver
	m        *memory
	step     time.Duration                        // between two allocations
	bytes    func(at time.Duration) float64       // of the next one
	slowdown float64                              // beside a cycle
	after    float64                              // for as long after it
	stall    func(at time.Duration) time.Duration // time in which the program does something else
	every    time.Duration                        // between two cycles
	wakes    time.Duration                        // after the end of a cycle that has held it
	due      func() bool                          // whether a cycle begins, in place of every
	syncs    bool                                 // the policy is asked at syncs only
}

const (
	tick = 25 * time.Microsecond
	step = 300 * time.Microsecond // between two allocations
)

// newLooper returns a program that allocates a MiB at each step.
func newLooper(t *testing.T, step time.Duration, slowdown float64, every time.Duration) *looper {
	l := &looper{driver: newDriver(t, governor.Caps{Cycles: 1}, policy.Skip), step: step, slowdown: slowdown, every: every}
	l.bytes = func(time.Duration) float64 { return mib }
	l.m = l.add(pressure.Device(0), 1<<20)
	return l
}

// learn runs so many cycles, and returns the slowdown that is known then.
func (l *looper) learn(cycles int) float64 {
	l.g.Learn()
	next, ended := l.every, -time.Hour
	for cycles > 0 {
		left := l.step
		if l.stall != nil {
			left += l.stall(l.now)
		}
		for ; left > 0; left -= tick {
			took := tick
			switch {
			case l.g.Running:
				took = time.Duration(float64(took) * (1 + l.slowdown))
				ended = l.now
			case l.now-ended < l.length:
				took = time.Duration(float64(took) * (1 + l.after))
			}
			l.pass(took)
			if l.g.Running && l.now > l.end-l.held {
				l.pass(l.end - l.now + l.wakes)
			}
		}
		if !l.g.Running && (l.due == nil && l.now >= next || l.due != nil && l.due()) {
			cycles--
			next += l.every
			l.begin(governor.Cause{Trigger: policy.TriggerPolicy, Action: policy.Overlap, Memory: &l.m.Memory})
		}
		n := int64(l.bytes(l.now))
		if l.syncs {
			l.g.Sync(l.now, 0)
		} else {
			l.g.Allocate(l.now, &l.m.Memory, n)
		}
		l.m.put(n)
	}
	l.g.See(0, 0)
	return l.g.Costs.Slowdown
}

// TestSlowdownByProgress: what a program loses beside cycles is learned from twenty of them, whatever it does between them.
func TestSlowdownByProgress(t *testing.T) {
	steady := func(time.Duration) float64 { return mib }
	r := rand.New(rand.NewPCG(1, 1))
	uneven := func(time.Duration) float64 { return mib * r.ExpFloat64() }
	phases := func(at time.Duration) float64 { return mib * (1 + 3*math.Floor(math.Mod(at.Seconds(), 2))) }
	swings := func(at time.Duration) float64 { return mib * (1.2 + math.Sin(at.Seconds()*7)) }
	for name, bytes := range map[string]func(time.Duration) float64{"steady": steady, "uneven": uneven, "phases": phases, "swings": swings} {
		for _, want := range []float64{0, 0.25, 0.8, 1.5, 4} {
			for _, every := range []time.Duration{15 * ms, 37 * ms, 300 * ms} {
				l := newLooper(t, step, want, every)
				l.bytes = bytes
				within := 0.3 * (1 + want)
				if name == "steady" {
					within = 0.1 * (1 + want)
				}
				if got := l.learn(24); math.Abs(got-want) > within {
					t.Errorf("%s, a cycle each %v: slowdown %.2f, want %.2f", name, every, got, want)
				}
			}
		}
	}
}

// TestSlowdownOfAProgramThatPauses is near 0 where cycles cost nothing, though the program allocates in bursts.
func TestSlowdownOfAProgramThatPauses(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := newLooper(t, ms, 0, 50*ms)
		l.bytes = func(time.Duration) float64 { return mib * r.Float64() }
		l.stall = func(time.Duration) time.Duration { return time.Duration(r.IntN(2)*r.IntN(20)) * ms }
		if got := l.learn(40); got > 0.3 {
			t.Errorf("seed %d: slowdown %.2f of cycles that cost nothing", seed, got)
		}
	}
}

// TestSlowdownOfStepsThatVary is near 0 where cycles cost nothing, though each cycle falls into the one step of a hundred that takes
// 20 to 100 ms.
func TestSlowdownOfStepsThatVary(t *testing.T) {
	for seed := range uint64(20) {
		r, n := rand.New(rand.NewPCG(seed, 3)), 0
		l := newLooper(t, ms, 0, 0)
		l.bytes = func(time.Duration) float64 { n++; return mib * float64(1+4095*(n%100/95)) }
		l.stall = func(time.Duration) time.Duration { return time.Duration(n%100/99*(20+r.IntN(80))) * ms }
		l.due = func() bool { return n > 300 && n%200 == 98 }
		l.held = l.length * 3 / 4
		if got := l.learn(30); got > 0.3 {
			t.Errorf("seed %d: slowdown %.2f of cycles that cost nothing", seed, got)
		}
	}
}

// TestSlowdownOfALoop: a loop makes 90 small objects quickly and then 10 large ones slowly. All cycles begin at the same place of it.
func TestSlowdownOfALoop(t *testing.T) {
	for place, want := range map[int]float64{30: 0.8, 90: 0, 91: 0.8} {
		n := 0
		l := newLooper(t, 0, want, 0)
		l.due = func() bool { return n > 1000 && n%300 == place }
		l.bytes = func(time.Duration) float64 { n++; return mib * float64(1+4095*(n%100/90)) }
		l.stall = func(time.Duration) time.Duration { return 4*tick + time.Duration(n%100/90)*2*ms }
		between(t, "slowdown in a loop", l.learn(24), want-0.1, want+0.1)
	}
}

// TestSlowdownBetweenSyncs: the slowdown is learned although the program, between two syncs, makes either 4 MiB in 0.1 ms or 1 KiB in 1 ms.
func TestSlowdownBetweenSyncs(t *testing.T) {
	for _, want := range []float64{0, 0.8} {
		r := rand.New(rand.NewPCG(1, 5))
		l := newLooper(t, 0, want, 37*ms)
		l.syncs = true
		next := 0
		l.stall = func(time.Duration) time.Duration { next = r.IntN(2); return []time.Duration{4 * tick, ms}[next] }
		l.bytes = func(time.Duration) float64 { return []float64{4 * mib, 1024}[next] }
		between(t, "slowdown between syncs", l.learn(24), want-0.3, want+0.1)
	}
}

// TestTimeInWhichCallersAreHeld is no slowdown: the cycle has it in its exposed pause. A gauge beside it hides none, however fast it grows.
func TestTimeInWhichCallersAreHeld(t *testing.T) {
	for _, want := range []float64{0, 1} {
		l := newLooper(t, step, want, 100*ms)
		l.held = l.length / 2
		gauge := l.add(pressure.Host, 0)
		gauge.Gauge = true
		l.bytes = func(time.Duration) float64 {
			l.g.Allocate(l.now, &gauge.Memory, 500*mib)
			gauge.put(int64(l.now)) // more and more
			return mib
		}
		between(t, "slowdown of a program that is held for half of each cycle", l.learn(24), 0.9*want, 1.1*want)
	}
}

// TestWhatFollowsACycleCounts: where the program is slowed for as long after a cycle, too, or catches up then, the cycle has cost
// more or less.
func TestWhatFollowsACycleCounts(t *testing.T) {
	for _, c := range []struct{ slowdown, after, least, most float64 }{
		{1, 0, 0.9, 1.1}, {1, 0.25, 2, 2.6}, {1, -0.2, 0.25, 0.45}, {0, 0.5, 0.4, 0.6}, {0.5, -0.25, 0, 0.1},
	} {
		l := newLooper(t, step, c.slowdown, 100*ms)
		l.after = c.after
		if got := l.learn(24); got < c.least || got > c.most {
			t.Errorf("slowed by %g beside a cycle and by %g after it: slowdown %.2f, want %g to %g", c.slowdown, c.after, got, c.least, c.most)
		}
	}
}

// TestFewLargeRequests tell nothing: how steps and cycles meet decides whether one falls into a cycle.
func TestFewLargeRequests(t *testing.T) {
	d := newDriver(t, governor.Caps{Cycles: 1}, policy.Skip)
	d.g.Learn()
	m := d.add(pressure.Device(0), 1<<20)
	for range 40 {
		d.g.Allocate(d.now, &m.Memory, 50*mib)
		m.put(50 * mib)
		d.pass(5 * ms)
		d.begin(governor.Cause{Trigger: policy.TriggerPolicy, Action: policy.Overlap, Memory: &m.Memory}) // ends before the next step
		d.pass(20 * ms)
	}
	d.g.See(0, 0)
	if got := d.g.Costs.Slowdown; got > 0 {
		t.Errorf("slowdown %.2f of cycles that cost nothing", got)
	}
}

// TestSlowdownOfAProgramThatWaitsForInput: it waits for long times now and then, which are most of its time. What cycles cost the
// work between them is learned all the same, and not forgotten while cycles hold the program, which tells nothing.
func TestSlowdownOfAProgramThatWaitsForInput(t *testing.T) {
	for _, want := range []float64{0, 0.8} {
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 4))
			l := newLooper(t, step, want, 50*ms)
			l.stall = func(time.Duration) time.Duration {
				if r.IntN(20) > 0 {
					return 0
				}
				return time.Duration(r.ExpFloat64() * 40 * float64(ms))
			}
			if got := l.learn(40); math.Abs(got-want) > 0.15 {
				t.Errorf("seed %d: slowdown %.2f, want %.2f", seed, got, want)
			}
			l.held = l.length - tick
			if got := l.learn(500); math.Abs(got-want) > 0.15 {
				t.Errorf("seed %d: slowdown %.2f after cycles that held the program, want %.2f", seed, got, want)
			}
		}
	}
}

// TestSlowdownOfAProgramThatIsHeld: it does almost nothing beside cycles, and runs again some time after each. That is no slowdown.
func TestSlowdownOfAProgramThatIsHeld(t *testing.T) {
	l := newLooper(t, ms, 0, 50*ms)
	l.wakes, l.held = ms, l.length-tick
	between(t, "slowdown", l.learn(40), 0, 0.1)
}
