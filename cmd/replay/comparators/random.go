package comparators

import (
	"math"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// random blocks for a cycle with probability P at every allocation and sync point, whatever the
// pressure. It is a control: a rule must beat it at an equal number of cycles. Its numbers depend
// on Seed alone, so that a replay repeats. The zero value never collects.
type random struct {
	blocking
	P    float64 // 0..1
	Seed int64

	drawn uint64 // numbers drawn so far
}

func (p *random) Params() []param.Param {
	return []param.Param{
		param.Headline(param.Bind(&p.P, "p", 0.01, param.Number(0, 1), "probability of a cycle at each point")),
		param.Bind(&p.Seed, "seed", 1, param.Integer(0), "start of the pseudo-random numbers"),
		param.Overlap(&p.Overlap),
	}
}

// Decide draws a number.
func (p *random) Decide(at policy.Point) policy.Decision {
	if p.P <= 0 {
		return policy.Decision{Wake: math.MaxInt64, Reason: "probability 0"}
	}
	if p.draw() >= p.P {
		return policy.Decision{Reason: "no luck"}
	}
	return policy.Decision{Action: p.action(at), Reason: "luck"}
}

// draw returns a number in [0, 1), by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), whose state is
// a counter.
func (p *random) draw() float64 {
	p.drawn++
	z := (uint64(p.Seed) + p.drawn) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) * 0x1p-53
}

func (p *random) Observe(policy.Cycle) {}

func (p *random) String() string { return param.Text("random", p.Params()) }
