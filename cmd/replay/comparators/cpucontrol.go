package comparators

import (
	"cmp"
	"math"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// cpuControl adjusts the size of the heap so that cycles take a target share of the program's
// processor time. After each cycle, over a window of the last three,
//
//	overhead = mean(processor time of a cycle) / mean(that of the program between two)
//	error    = overhead - target, in percentage points
//	heap     = heap x (sigmoid(error) + 0.5)
//
// so that it shrinks to half or grows by half at most. A cycle starts when live bytes would exceed
// the heap, which is at least LiveAfter + Min, and at most the limit. Upstream divides a
// collector's processor time by a program's. Here the program is taken to use as many processors as
// a cycle. The error counts in percentage points by our reading: as a share it would hardly move
// the heap. The zero value never collects. Controlling a heap's size by feedback goes back to
// White, Singer, Aitken and Jones, "Control Theory for Principled Heap Sizing", ISMM 2013.
//
// Source: Tavakolisomeh, Shimchenko, Osterlund, Bruno, Ferreira, Wrigstad, "Heap Size Adjustment
// with CPU Control", MPLR 2023, doi 10.1145/3617651.3622988, whose target is 15; ruby/mmtk pull
// request 77, whose is 5.
type cpuControl struct {
	Target  float64    // share, 0 to 1
	Min     param.Size // least headroom, and the first heap
	Overlap bool       // run beside the program

	heap   float64    // bytes; 0 before the first decision
	cycles [3]float64 // processor time of the last ones, ns
	apps   [3]float64 // of the program before each
	n      int
	ended  float64 // end of the last cycle, ns
}

func (p *cpuControl) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Target, "target", 0.05, param.Percent(), "share of the program's processor time that cycles are to take"),
		param.Bind(&p.Min, "min", param.Size{Bytes: 2 * miB}, param.SizeOr(2*miB), "least headroom, and the first heap"),
		param.Bind(&p.Overlap, "overlap", true, param.Bool(), "run the cycle beside the program"),
	}
}

func (p *cpuControl) Decide(at policy.Point) policy.Decision {
	if at.At == policy.Sync {
		return policy.Decision{Reason: "not an allocation"}
	}
	heap := max(int64(p.heap), at.LiveAfter+p.Min.Of(at.Sample.Limit))
	if at.Sample.Limit > 0 {
		heap = min(heap, at.Sample.Limit)
	}
	if granted(&at) <= heap || p.Min == (param.Size{}) {
		p.heap = float64(heap)
		return policy.Decision{Wake: heap + 1, Reason: "within the heap"}
	}
	b := blocking{p.Overlap}
	return policy.Decision{Action: b.action(at), Reason: "heap used up"}
}

// Observe adjusts the heap.
func (p *cpuControl) Observe(c policy.Cycle) {
	work := float64(cmp.Or(max(0, c.Work), c.Duration))
	end := float64(c.Start + c.Duration)
	p.cycles[p.n%3], p.apps[p.n%3] = work, max(1, end-p.ended-work)
	p.n, p.ended = p.n+1, end
	var cycles, apps float64
	for i := range min(p.n, 3) {
		cycles, apps = cycles+p.cycles[i], apps+p.apps[i]
	}
	p.heap *= 0.5 + 1/(1+math.Exp(100*(p.Target-cycles/apps)))
}

func (p *cpuControl) String() string { return param.Text("cpucontrol", p.Params()) }
