package governor

import (
	"cmp"
	"fmt"
	"time"
)

// Caps bound the cost of a collector to the program, whatever its policy says. The zero value
// suits a service.
type Caps struct {
	// Cycles is the largest share of the program's processors that cycles may take, 0 to 1. Work
	// on idle processors and the runtime's own cycles do not count. 0 means 0.25. With 1 there is
	// no cap, and no memory rests.
	Cycles float64
	// Held is the largest share of any second for which callers are told to wait for a soft memory
	// (that of Own and Account), 0 to 1. 0 means 0.05. On a machine whose processors are all busy,
	// timers fire late and goroutines resume later still. That extra time does not count, and has no
	// bound.
	Held float64
	// Assist is the longest time for which one caller is told to wait for a soft memory. It is at
	// most a fifth of the time that Held allows in a second. 0 means 10 ms. Below 0, no memory is
	// soft. Callers are then held for whole cycles if the policy blocks or the limit is reached,
	// and Held has no effect.
	Assist time.Duration
}

// CappedReason is the reason of a decision that the caps turned into a skip.
const CappedReason = "capped"

// Check fills in the defaults. It returns an error for a share outside 0 to 1.
func (c *Caps) Check() error {
	if !(c.Cycles >= 0 && c.Cycles <= 1) || !(c.Held >= 0 && c.Held <= 1) {
		return fmt.Errorf("gc: Caps.Cycles is %v and Caps.Held %v: want shares from 0 to 1", c.Cycles, c.Held)
	}
	c.Cycles, c.Held, c.Assist = cmp.Or(c.Cycles, 0.25), cmp.Or(c.Held, 0.05), cmp.Or(c.Assist, 10*time.Millisecond)
	return nil
}

// mayBegin reports whether the cap on cycles allows one to begin now.
func (g *Governor) mayBegin(at time.Duration) bool { return at >= g.next }

// spend charges the processor time of a cycle, summed over all processors, to the cap on cycles.
func (g *Governor) spend(begin, work time.Duration) {
	if g.caps.Cycles >= 1 {
		return
	}
	g.next = max(g.next, begin) + time.Duration(float64(work)/(g.caps.Cycles*float64(g.Processors)))
}

// A heldBudget is the time for which callers may still be held. It fills at half of the allowed
// share, and saves at most three tenths of a second's share. A wait of at most a fifth may carry
// over from the second before. The three add up to the whole share, so no second exceeds it.
type heldBudget struct {
	filled time.Duration // time of the last fill
	saved  time.Duration
	until  time.Duration // when the last held caller goes on
}

// LeastAssist is the shortest wait that is worth a timer.
const LeastAssist = 100 * time.Microsecond

// hold returns how long a caller is held from now, at most want. Time in which several callers are
// held is charged once.
func (g *Governor) hold(at, want time.Duration) time.Duration {
	b := &g.budget
	part := func(share float64, d time.Duration) time.Duration {
		return time.Duration(share * g.caps.Held * float64(d))
	}
	b.saved = min(b.saved+part(0.5, at-b.filled), part(0.3, time.Second))
	b.filled = at
	want = min(want, g.caps.Assist, part(0.2, time.Second))
	from := max(at, b.until)
	if more := min(at+want-from, b.saved); more >= LeastAssist {
		b.saved -= more
		b.until = from + more
	}
	if want = min(want, b.until-at); want < LeastAssist {
		return 0
	}
	return want
}

// LetGo gives the remaining hold time back to the budget. The shell calls it once the cycle has
// settled, because callers then go on.
func (g *Governor) LetGo(at time.Duration) {
	b := &g.budget
	b.saved += max(0, b.until-at)
	b.until = min(b.until, at)
}
