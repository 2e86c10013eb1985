package policy

import (
	"math"
	"time"
)

// A price is what freed bytes have cost so far: decaying sums over cycles.
type price struct {
	paid   float64 // ns
	got    float64 // bytes that were freed
	early  float64 // bytes of room at their starts, which later ones would have freed
	cycles float64
}

const keepPrice = 0.85 // per cycle: the last seven count

func (p *price) learn(paid, got, early float64) {
	p.paid = keepPrice*p.paid + paid
	p.got = keepPrice*p.got + got
	p.early = keepPrice*p.early + early
	p.cycles = keepPrice*p.cycles + 1
}

// of returns what a byte is worth, in ns, where drills say that a cycle costs so much. What cycles cost in
// fact feeds on itself: late starts make bytes dear, and dear bytes make starts late. What they would cost does not, but
// drills are no cycles. So it is the geometric mean of both. Before the first cycle it is what drills say, and
// a cycle is taken to free all of the budget.
func (p *price) of(drilled float64, budget int64) float64 {
	if p.got <= 0 {
		return drilled / float64(max(1, budget))
	}
	return math.Sqrt(p.paid / p.got * drilled * p.cycles / (p.got + p.early))
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

// A ceiling is where memory ends, if that is before the limit: fragments, other processes and a
// library's own memory are in no limit. It lies between the most that was granted, which is
// the limit to go by, and the least that was refused. What is in between is asked for beside a
// cycle: so it costs no more than a cycle that blocks, whether it is granted or not.
//
// After a number of cycles without an end the limit that was told is gone by again, until the next
// end, still with a cycle beside whatever is above the most that was granted. Each time that this
// proves wrong, the number is larger.
type ceiling struct {
	granted int64 // most live bytes since memory ended last
	ended   bool  // it has
	cycles  int   // since then
	keep    int   // cycles after which the limit is gone by again
}

const (
	ceilingKeep = 256
	ceilingMore = 4 // times as many the next time
)

// see notes what is live. It returns how much is known to be there.
func (c *ceiling) see(live, told int64) int64 {
	c.granted = max(c.granted, live)
	if !c.ended {
		return told
	}
	return min(told, c.granted)
}

// under returns the limit to go by.
func (c *ceiling) under(told int64) int64 {
	if !c.ended || c.cycles >= c.keep {
		return told
	}
	return min(told, c.granted)
}

// learn is told of a cycle. Memory has ended if something did not fit that would have under
// the limit.
func (c *ceiling) learn(done Cycle) {
	if done.Wanted <= 0 || done.Wanted > done.Limit {
		c.cycles++
		return
	}
	if live := done.LiveAfter + done.Freed; live > c.granted || done.Wanted <= c.granted {
		c.granted = live
	}
	if !c.ended {
		c.keep = ceilingKeep
	} else if c.cycles >= c.keep {
		c.keep *= ceilingMore
	}
	c.ended, c.cycles = true, 0
}
