package policy

import "math"

// random blocks for a cycle with probability P at every allocation and sync
// point, whatever the pressure. It is a control: a rule must beat it at an equal
// number of cycles. Its numbers depend on Seed alone, so that a replay repeats.
// The zero value never collects.
type random struct {
	blocking
	P    float64 // 0..1
	Seed int64

	drawn uint64 // numbers drawn so far
}

func (p *random) params() []Param {
	return []Param{
		headline(bind(&p.P, "p", 0.01, numberKind(0, 1), "probability of a cycle at each point")),
		bind(&p.Seed, "seed", 1, integerKind(0, math.MaxInt64), "start of the pseudo-random numbers"),
		p.overlapParam(),
	}
}

// Decide draws a number.
func (p *random) Decide(at Point) Decision {
	if p.P <= 0 {
		return Decision{Wake: math.MaxInt64, Reason: "probability 0"}
	}
	if p.draw() >= p.P {
		return Decision{Reason: "no luck"}
	}
	return Decision{Action: p.action(at), Reason: "luck"}
}

// draw returns a number in [0, 1): SplitMix64 (Steele, Lea, Flood, OOPSLA
// 2014), the state of which is a counter.
func (p *random) draw() float64 {
	p.drawn++
	z := (uint64(p.Seed) + p.drawn) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) * 0x1p-53
}

func (p *random) Observe(Cycle) {}

func (p *random) String() string { return textOf("random", p.params()) }
