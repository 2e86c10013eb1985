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

// A burst knows how fast the program allocates.
type burst struct {
	most float64 // bytes allocated in a time as long as a cycle, decaying
	rate float64 // bytes per ns, smoothed

	begin moment // of the present window
	begun bool
}

const (
	keepMost = 0.8 // per cycle: what was seen three cycles ago counts half
	keepRate = 0.8
	headway  = 1.25 // a window may begin in the middle of a burst
)

// forget lets old bursts fade.
func (b *burst) forget() { b.most *= keepMost }

func (b *burst) see(now moment, request int64, g time.Duration) {
	if !b.begun || now.total < b.begin.total { // the program freed by itself
		b.begin, b.begun = now, true
		return
	}
	grown := float64(now.total - b.begin.total + request)
	length := now.time - b.begin.time
	if length < g {
		b.most = max(b.most, grown)
		return
	}
	length = max(1, length)
	b.most = max(headway*grown*float64(g)/float64(length), b.most)
	b.rate = keepRate*b.rate + (1-keepRate)*grown/float64(length)
	b.begin = now
}

// A stretch is by how much growth is taken to be more than foreseen.
type stretch struct {
	share float64

	planned float64 // ns that the cycle under way is to expose
	spares  float64 // what one more share costs each cycle in bytes, against what a cycle held in full costs
	mine    bool    // a cycle of the plan's is under way
}

const (
	stretchStep = 0.5  // by which a cycle exposed in full, not foreseen, raises the share
	stretchMost = 2    // beyond which a future says nothing
	unforeseen  = 0.05 // chance that no future comes but the largest burst: of twenty futures, one was not among the samples
)

// started notes what the plan expects of the cycle that it starts.
func (s *stretch) started(exposes, spares float64) {
	s.planned, s.spares, s.mine = exposes, min(1, spares), true
}

// learn moves the share to where the pauses that were not foreseen cost what the
// headroom given up does.
func (s *stretch) learn(exposed, length time.Duration) {
	if !s.mine {
		return
	}
	s.mine = false
	missed := min(1, max(0, float64(exposed)-s.planned)/float64(max(1, length)))
	s.share = min(max(0, s.share+stretchStep*(missed-s.spares)), stretchMost)
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
