package policy

import "time"

// periodic blocks for a cycle at the first allocation or sync point after
// Every has passed since it last did. The zero value never collects.
type periodic struct {
	blocking
	Every time.Duration

	last time.Duration // when it last decided to collect
}

func (p *periodic) params() []Param {
	return []Param{headline(bind(&p.Every, "every", 10*time.Millisecond, durationKind(), "time between the starts of two cycles")), p.overlapParam()}
}

// Decide compares the clock with the last cycle's.
func (p *periodic) Decide(at Point) Decision {
	if p.Every <= 0 || at.Now-p.last < p.Every {
		return Decision{Reason: "within the period"}
	}
	p.last = at.Now
	return Decision{Action: p.action(at), Reason: "period over"}
}

func (p *periodic) Observe(Cycle) {}

func (p *periodic) String() string { return textOf("periodic", p.params()) }
