package gc

import "math"

// Always blocks for a cycle at every sync point, and nowhere else. In a
// recording made under it, the time of each drop is right to within one sync
// interval.
type Always struct{ blocking }

func (p *Always) params() []Param { return []Param{p.overlapParam()} }

// Decide blocks at sync points.
func (p *Always) Decide(at Point) Decision {
	if at.At != Sync {
		return Decision{Wake: math.MaxInt64, Reason: "not a sync point"}
	}
	return Decision{Action: p.action(at), Wake: math.MaxInt64, Reason: "sync point"}
}

// Observe does nothing.
func (*Always) Observe(Cycle) {}

// String returns always.
func (p *Always) String() string { return textOf("always", p.params()) }
