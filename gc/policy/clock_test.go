package policy

import (
	"testing"
	"time"
)

// TestClockIsTheProgramsOwn: pauses do not count, nor what a program loses beside a
// cycle, which is nothing while it waits.
func TestClockIsTheProgramsOwn(t *testing.T) {
	var c clock
	at := Point{Cost: 40 * ms, Slowdown: 1}
	look := func(now, held time.Duration, kind PointKind, wait time.Duration, running bool) {
		at.Now, at.At, at.Wait, at.Running = now, kind, wait, running
		c.see(&at, held)
	}
	look(10*ms, 0, Allocation, 0, false)
	look(20*ms, 0, Allocation, 0, true) // 5 ms of its own
	look(30*ms, 0, Sync, 15*ms, true)   // 5
	look(45*ms, 0, Allocation, 0, true) // 15
	// The cycle ends at 60 ms; for the last 10 of them the program was held.
	lost := c.end(Cycle{Start: 10 * ms, Duration: 50 * ms, Action: Overlap}, 10*ms, 0) // 2.5
	if lost != 12500*time.Microsecond || c.time != 37500*time.Microsecond || c.waited != 15*ms {
		t.Errorf("ran %v, of which it waited %v, lost %v", c.time, c.waited, lost)
	}
	look(65*ms, 10*ms, Allocation, 0, false)
	if c.time != 42500*time.Microsecond {
		t.Errorf("ran %v, 5 ms after the cycle", c.time)
	}
}
