package gc

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"time"
)

// Caps bound what a collector takes from the program, whatever its policy says. The
// zero value is good for a service.
type Caps struct {
	// Cycles is the most of the processor time of GOMAXPROCS that the cycles which the
	// collector starts may take, 0 to 1; what only idle cores do does not count. 0 means
	// 0.25. With 1 there is no cap, and no rest after cycles that free little.
	Cycles float64
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
	defaultHeld   = 0.05
	defaultAssist = 10 * time.Millisecond
)

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

// cappedReason is the reason of a decision that a cap has turned into a skip.
const cappedReason = "capped"

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
	if p.Held == 0 {
		p.Held = defaultHeld
	}
	if p.Assist == 0 {
		p.Assist = defaultAssist
	}
	return nil
}

// Caps returns the caps of a collector, with their defaults filled in.
func (c *Collector) Caps() Caps { return c.brake.Caps }

// A brake holds back cycles by the caps. The collector's mu guards it.
type brake struct {
	Caps
	next   time.Duration // no cycle starts before this: the share of processor time
	futile int           // cycles in a row that freed little
}

// A lull is a time in which no cycle starts at an allocation.
type lull struct {
	until time.Duration
	gate  *Gate
	low   int64 // live bytes of the gate below which something has changed
}

// over reports whether a cycle may start at an allocation of g with so many live bytes.
func (r *lull) over(now time.Duration, g *Gate, live int64) bool {
	return r == nil || now >= r.until || g == r.gate && live < r.low
}

// learn is told of a cycle that has ended at now, took so much processor time, and
// left kept bytes of those that were live before it. It returns the lull that
// follows, which may be nil.
func (b *brake) learn(c Cycle, g *Gate, now, processor time.Duration, kept int64) *lull {
	if b.Cycles >= 1 || g == nil {
		return nil
	}
	own := c.Trigger != TriggerNatural
	if own {
		b.next = max(b.next, c.Start) + time.Duration(float64(processor)/(b.Cycles*float64(runtime.GOMAXPROCS(0))))
	}
	if float64(c.Freed) >= littleShare*float64(kept+c.Freed) {
		b.futile = 0
	} else if own {
		b.futile++
	}
	until, took := b.next, cmp.Or(c.Work, c.Duration)
	if _, gauge := g.source.(*Gauge); b.futile > 0 && !gauge { // which rests by itself
		until = max(until, now+min(restMax, took*restFactor<<min(b.futile, 16)))
	}
	if g.isSoft() && c.Limit > 0 && float64(kept) > crowdedShare*float64(c.Limit) {
		until = max(until, now+took*crowdedRest)
	}
	if until <= now {
		return nil
	}
	return &lull{until, g, c.LiveAfter - c.LiveAfter/8}
}

// A purse is the time for which callers may be held. In no second more than the share is
// spent: half of it comes in, three tenths may be saved, and a hold of one fifth may
// reach into the second from before.
type purse struct {
	share  float64
	filled time.Duration // when it was last looked at
	time   time.Duration // in it
	until  time.Duration // when the last of those who are held goes on
}

// take returns for how long a caller may be held from now on. Callers that are
// held at the same time spend time once.
func (p *purse) take(now, want time.Duration) time.Duration {
	part := func(of float64, d time.Duration) time.Duration { return time.Duration(of * p.share * float64(d)) }
	p.time = min(p.time+part(0.5, now-p.filled), part(0.3, time.Second))
	p.filled = now
	want = min(want, part(0.2, time.Second))
	from := max(now, p.until)
	if more := min(now+want-from, p.time); more >= leastAssist {
		p.time -= more
		p.until = from + more
	}
	return max(0, min(want, p.until-now))
}

// giveBack returns what is not needed: nobody is held any more.
func (p *purse) giveBack(now time.Duration) {
	p.time += max(0, p.until-now)
	p.until = min(p.until, now)
}

// leastAssist is the shortest wait that is worth a timer. Less is owed.
const leastAssist = 100 * time.Microsecond

// assist holds a caller that adds bytes beside the cycle r for its share of what is
// left of it: as long as the cycle takes for each time that the room up to the limit
// is filled. That is how Go's mark makes allocations assist it (runtime/mgcpacer.go).
func (o *ownership) assist(r *collection, bytes int64) {
	limit := o.limit.Load()
	if limit <= 0 || r.gate != o.gate {
		return
	}
	room := max(limit-r.live, limit/64, 1)
	share := time.Duration(min(float64(bytes)/float64(room), 1) * float64(r.expected))
	if owed := time.Duration(o.owed.Add(int64(share))); owed >= leastAssist {
		o.owed.Add(-int64(owed))
		o.gate.c.lend(r, o.live.Load()+bytes-r.live, room, owed)
	}
}

// lend holds a caller for at most want: while more than its share of room is used.
func (c *Collector) lend(r *collection, used, room int64, want time.Duration) {
	now := c.Now()
	due := r.begin + time.Duration(min(float64(used)/float64(room), math.MaxInt32)*float64(r.expected))
	c.holdBriefly(r, now, min(want, due-now), true)
}

// giveWay lets the cycle r have the caller's processor. On busy processors each of its
// steps otherwise waits until a goroutine has used up its slice of 10 ms: its start, the mark, the end of
// the mark, the releases; a cycle of 0.3 ms takes 30 to 60. The first caller to come by, which is who has asked for r, waits
// for it as the caps allow, unless a processor is free; a few more let others run once.
func (c *Collector) giveWay(r *collection) {
	n := int(r.passed.Add(1))
	if n > 2*runtime.GOMAXPROCS(0) {
		return
	}
	if n > 1 {
		runtime.Gosched()
	} else if !c.engine.spare() {
		c.holdBriefly(r, c.Now(), c.brake.Assist, false)
	}
}

// holdBriefly holds a caller beside r for at most want from now on, and no longer than the caps allow.
// Where the caller only lends its processor, r exposes nothing: without that, r would have taken it from another.
func (c *Collector) holdBriefly(r *collection, now, want time.Duration, exposes bool) {
	c.mu.Lock()
	want = c.purse.take(now, min(want, c.brake.Assist))
	if exposes && want >= leastAssist {
		r.held = min(r.held, now)
	}
	c.mu.Unlock()
	if want < leastAssist {
		return
	}
	timer := time.NewTimer(want)
	defer timer.Stop()
	select {
	case <-r.done:
		c.mu.Lock()
		c.purse.giveBack(c.Now())
		c.mu.Unlock()
	case <-timer.C:
	}
	c.paused(r, now)
}
