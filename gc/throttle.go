package gc

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// Caps bound what a collector takes from the program, whatever its policy says. The
// zero value is good for a service.
type Caps struct {
	// Cycles is the most of the processor time of GOMAXPROCS that the cycles which the
	// collector starts may take, 0 to 1; what only idle cores do does not count. 0 means
	// 0.25. With 1 there is no cap, and no back-off after cycles that free little. After cycles C's allocator is made to give free pages
	// back, where it is glibc's and these are worth it (2e-8 processors for each byte): that may take as much again. EAGERGC_TRIM=off ends it.
	Cycles float64
	// Gauges is the most cycles a second that a gauge asks for. Finalizers and cleanups of others free what it reads, and many
	// bindings crash where one of those runs during a call: AUDIT.md. Fewer cycles are fewer chances, and more memory. 0 means 100.
	Gauges float64
	// Held is the most of any second for which callers of Own and Account are told to wait, 0 to 1.
	// 0 means 0.05. On a machine whose processors are all taken a timer fires late, and a waiting goroutine goes on
	// later still: that is not in it, and has no bound.
	Held float64
	// Assist is the longest that one call of Own or Account is told to wait, and at most a fifth
	// of what Held allows in a second. 0 means 10 ms. Below
	// 0 callers are held for whole cycles where the policy blocks or the limit is
	// reached, and Held does not count.
	Assist time.Duration
}

const (
	defaultCycles = 0.25
	defaultGauges = 100
	defaultHeld   = 0.05
	defaultAssist = 10 * time.Millisecond
)

// usualCaps is the zero value with its defaults filled in.
func usualCaps() (p Caps) {
	_ = p.check()
	return p
}

// check fills in the defaults.
func (p *Caps) check() error {
	if !(p.Cycles >= 0 && p.Cycles <= 1) || !(p.Held >= 0 && p.Held <= 1) {
		return fmt.Errorf("gc: Caps.Cycles is %v and Caps.Held %v: want shares from 0 to 1", p.Cycles, p.Held)
	}
	if p.Cycles == 0 {
		p.Cycles = defaultCycles
	}
	if !(p.Gauges >= 0) {
		return fmt.Errorf("gc: Caps.Gauges is %v: want cycles a second, 0 or more", p.Gauges)
	}
	if p.Gauges == 0 {
		p.Gauges = defaultGauges
	}
	if p.Held == 0 {
		p.Held = defaultHeld
	}
	if p.Assist == 0 {
		p.Assist = defaultAssist
	}
	return nil
}

// A throttle bounds what a collector takes from the program: it has a budget of processor time for cycles, a budget of
// time for which callers are held, and a back-off after cycles that free little. (Gauges, whose
// yields are estimates, have a back-off of their own.) The collector's mu guards it, but for pause.
type throttle struct {
	Caps
	next   time.Duration // cycles: none starts before this
	futile int           // cycles in a row that freed little
	pause  atomic.Pointer[pause]

	filled time.Duration // callers: when the budget was last filled
	saved  time.Duration // what is in it
	until  time.Duration // when the last of those who are held goes on
}

// A pause is a time in which no cycle starts at an allocation.
type pause struct {
	until time.Duration
	gate  *Gate
	low   int64 // live bytes of the gate below which something has changed
	high  int64 // and above which, for a memory that grows is another one than the cycles have judged
}

// Cycles that free little are of no use. After the nth in a row the policy is not
// asked at allocations for 8 x 2^n times the processor time that the last one took, so that n
// such cycles take less than 1/8 of the time, and ever less.
const (
	littleShare = 1.0 / 64 // of the live bytes before the cycle
	restFactor  = 8
	restMax     = 2 * time.Minute // as Go itself collects at least (forcegcperiod)
)

// Where more than 7/8 of the limit of Own was reachable, cycles can only win room
// that is used up soon. They then take at most a twentieth of the time.
const (
	crowdedShare = 7.0 / 8
	crowdedRest  = 20
)

// cappedReason is the reason of a decision that the throttle has turned into a skip.
const cappedReason = "capped"

// mayAsk reports whether a cycle may start at an allocation of g with so many live bytes. It needs no lock.
func (t *throttle) mayAsk(now time.Duration, g *Gate, live int64) bool {
	p := t.pause.Load()
	return p == nil || now >= p.until || g == p.gate && (live < p.low || live > p.high)
}

// mayBegin reports whether cycles keep to their share of the processor time if one starts now.
func (t *throttle) mayBegin(now time.Duration) bool { return now >= t.next }

// forget ends the back-off: something is not as it was.
func (t *throttle) forget() {
	t.futile = 0
	t.pause.Store(nil)
}

// stop lets no policy be asked any more.
func (t *throttle) stop() { t.pause.Store(&pause{until: math.MaxInt64}) }

// learn is told of a cycle for g that has ended at now, took so much processor time, and
// left kept bytes of those that were live before it: 0 for one of the runtime's own, of which nobody knows, so that it ends the back-off.
func (t *throttle) learn(c policy.Cycle, g *Gate, now, processor time.Duration, kept int64) {
	if t.Cycles >= 1 || g == nil {
		t.pause.Store(nil)
		return
	}
	if c.Trigger != policy.TriggerNatural {
		t.next = max(t.next, c.Start) + time.Duration(float64(processor)/(t.Cycles*float64(runtime.GOMAXPROCS(0))))
	}
	if float64(c.Freed) >= littleShare*float64(kept+c.Freed) {
		t.futile = 0
	} else {
		t.futile++
	}
	until, work := t.next, cmp.Or(c.Work, c.Duration)
	if t.futile > 0 && g.gauge() == nil { // which backs off by itself
		until = max(until, now+min(restMax, work*restFactor<<min(t.futile, 16)))
	}
	if g.isSoft() && c.Limit > 0 && float64(kept) > crowdedShare*float64(c.Limit) {
		until = max(until, now+work*crowdedRest)
	}
	if until <= now {
		t.pause.Store(nil)
		return
	}
	t.pause.Store(&pause{until, g, g.liveAfter - g.liveAfter/8, 2*g.liveAfter + restLeast})
}

// leastAssist is the shortest wait that is worth a timer. Less is owed.
const leastAssist = 100 * time.Microsecond

// hold returns for how long a caller may be held from now on. Callers that are
// held at the same time spend the budget once. In no second more than the share is
// spent: half of it comes in, three tenths may be saved, and a wait of one fifth may
// reach into the second from before.
func (t *throttle) hold(now, want time.Duration) time.Duration {
	part := func(of float64, d time.Duration) time.Duration { return time.Duration(of * t.Held * float64(d)) }
	t.saved = min(t.saved+part(0.5, now-t.filled), part(0.3, time.Second))
	t.filled = now
	want = min(want, t.Assist, part(0.2, time.Second))
	from := max(now, t.until)
	if more := min(now+want-from, t.saved); more >= leastAssist {
		t.saved -= more
		t.until = from + more
	}
	return max(0, min(want, t.until-now))
}

// letGo takes back what is not needed: nobody is held any more.
func (t *throttle) letGo(now time.Duration) {
	t.saved += max(0, t.until-now)
	t.until = min(t.until, now)
}
