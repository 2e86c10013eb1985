package policy

import "time"

// A clock counts the time that a program has run: without the pauses for which cycles held
// it, and without what it lost beside them. Waits count, and are not slowed.
type clock struct {
	time   time.Duration // that it has run
	waited time.Duration // of that
	lost   time.Duration // beside the cycle under way, or the last one

	seen  time.Duration // last look, pauses not counted
	wait  time.Duration // that the program is expected to be in from then on
	taken float64       // share of a cycle's length that the program loses beside it
}

// see brings the clock to a point.
func (c *clock) see(at *Point, held time.Duration) {
	c.taken = at.taken()
	c.pass(at.Now-held, at.Running)
	if c.wait = 0; at.At == Sync {
		c.wait = at.Wait
	}
}

// end brings the clock to the end of a cycle. It returns what the program lost beside it.
func (c *clock) end(done Cycle, exposed, held time.Duration) (lost time.Duration) {
	beside := done.Action == Overlap && done.Trigger != TriggerNatural
	c.pass(done.Start+done.Duration-exposed-held, beside)
	if !beside {
		return 0
	}
	return c.lost
}

func (c *clock) pass(to time.Duration, beside bool) {
	d := max(0, to-c.seen)
	c.seen += d
	waited := min(d, c.wait)
	c.wait -= waited
	c.waited += waited
	if beside {
		lost := time.Duration(c.taken * float64(d-waited))
		c.lost += lost
		d -= lost
	}
	c.time += d
}

// beside is the time that a cycle runs until the program, slowed by it, is at a moment. Its differences count.
func (m *moment) beside(slow float64) float64 {
	return float64(m.time) + slow*float64(m.time-m.waited)
}
