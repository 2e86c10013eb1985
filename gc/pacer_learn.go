package gc

import "time"

// A price is what cycles cost per byte that they free, in ns.
type price struct{ paid, got float64 } // decaying sums: ns, bytes

const keepPrice = 0.85 // per cycle: the last seven count

func (p *price) learn(paid, got float64) {
	p.paid = keepPrice*p.paid + paid
	p.got = keepPrice*p.got + got
}

// of returns the price; before the first cycle, that of a hidden one that
// frees all of the budget.
func (p *price) of(budget int64, g time.Duration, share float64) float64 {
	if p.got <= 0 {
		return share * float64(g) / float64(max(1, budget))
	}
	return p.paid / p.got
}

// A stretch is by how much longer cycles take than the pacer is told.
type stretch struct {
	told        time.Duration // at the last decision
	took, meant float64       // decaying sums, ns
}

const keepStretch = 0.9 // per cycle: the last ten count

// of corrects what is told about a cycle.
func (s *stretch) of(told time.Duration) time.Duration {
	if s.meant <= 0 {
		return told
	}
	return time.Duration(float64(told) * min(max(s.took/s.meant, 0.25), 4))
}

func (s *stretch) learn(took time.Duration) {
	s.took = keepStretch*s.took + float64(took)
	s.meant = keepStretch*s.meant + float64(s.told)
}

// A flow is how fast the program allocates.
type flow struct {
	rate  float64 // bytes per ns, smoothed
	begin moment  // of the present window, which is as long as a cycle
	begun bool
}

const keepRate = 0.8

func (f *flow) see(now moment, request int64, g time.Duration) {
	if !f.begun || now.total < f.begin.total { // the program freed by itself
		f.begin, f.begun = now, true
		return
	}
	if length := now.time - f.begin.time; length >= g {
		grown := float64(now.total - f.begin.total + request)
		f.rate = keepRate*f.rate + (1-keepRate)*grown/float64(max(1, length))
		f.begin = now
	}
}

// A ceiling is a limit learned from refusals where there should have been room:
// fragments, other processes and a library's own memory are in no limit. It is
// forgotten after a number of cycles, which is longer each time it proves right.
type ceiling struct {
	bytes   int64 // 0 = none learned
	cycles  int   // since then
	keep    int   // cycles after which it is forgotten
	reached int64 // most live bytes seen
	fits    bool  // the last request fitted under the limit that was told
}

const (
	ceilingKeep = 256 // cycles for which the first one is kept
	ceilingMore = 4   // times as long the next
)

// under returns the limit to go by.
func (c *ceiling) under(told int64) int64 {
	if c.bytes > 0 && c.bytes < told {
		return c.bytes
	}
	return told
}

// ask notes a point.
func (c *ceiling) ask(at Point, told int64) {
	c.reached = max(c.reached, at.Sample.Live)
	c.fits = told > 0 && !exceeds(at, told)
}

// learn takes what was reached for the limit, after a refusal of what should
// have fitted.
func (c *ceiling) learn(done Cycle) {
	if done.Trigger != TriggerRefusal || !c.fits {
		if c.cycles++; c.cycles >= c.keep {
			c.bytes = 0
		}
		return
	}
	c.reached = max(c.reached, done.LiveAfter+done.Freed)
	c.bytes, c.cycles, c.keep = c.reached, 0, max(ceilingKeep, ceilingMore*c.keep)
	c.reached = 0
}
