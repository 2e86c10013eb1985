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

// A margin is how much earlier than forecast a cycle starts: the worst error of
// a past forecast, which fades by the ratio of what being early costs to what
// being late does. So the worst of about the last 1/ratio forecasts counts, and
// one in that many is missed. Before the first it is half a cycle.
type margin struct {
	early float64 // ns

	checked bool          // a forecast has been
	pends   bool          // a forecast is to be checked:
	total   int64         // this total ...
	when    time.Duration // ... is reached at this time
}

// expect notes a forecast, unless one is pending.
func (m *margin) expect(total int64, when time.Duration) {
	if !m.pends {
		m.pends, m.total, m.when = true, total, when
	}
}

// see checks the pending forecast. A ns too early costs cheap times what a ns
// too late does.
func (m *margin) see(now moment, request int64, g time.Duration, cheap float64) {
	cycle := float64(g)
	if !m.checked {
		m.early = cycle / 2
	}
	if !m.pends || now.total+request < m.total {
		return
	}
	m.pends, m.checked = false, true
	m.early = max(0, float64(m.when-now.time), m.early*(1-min(1, cheap)))
	m.early = min(m.early, cycle)
}

// A doubt is how much of a cycle was exposed, beyond what was planned, on
// average where the forecast seemed beyond doubt: 0 to 1.
type doubt struct {
	mean    float64
	planned float64 // ns that the cycle under way is to expose
}

func (d *doubt) learn(exposed, length time.Duration) {
	miss := (float64(exposed) - d.planned) / float64(max(1, length))
	d.mean += 0.1 * (min(max(miss, 0), 1) - d.mean)
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
