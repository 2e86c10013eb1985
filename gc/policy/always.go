package policy

import "math"

// always blocks for a cycle at every sync point, and nowhere else. In a
// recording made under it, the time of each drop is right to within one sync
// interval.
type always struct{ blocking }

func (p *always) params() []Param { return []Param{p.overlapParam()} }

// Decide blocks at sync points.
func (p *always) Decide(at Point) Decision {
	if at.At != Sync {
		return Decision{Wake: math.MaxInt64, Reason: "not a sync point"}
	}
	return Decision{Action: p.action(at), Wake: math.MaxInt64, Reason: "sync point"}
}

func (*always) Observe(Cycle) {}

func (p *always) String() string { return textOf("always", p.params()) }
