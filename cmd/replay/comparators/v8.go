package comparators

import (
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// v8 is V8's rule since 14.8 (March 2026). External bytes count towards one limit of the heap:
//
//	limit = heap x f + low x min(f, 1.1)
//
// Heap is the Go heap that the last cycle kept, and low the lowest level of external bytes since
// then. The factor f lies between 1.1 and 4. The program runs for 97 % of the time if the speeds of
// collector and program stay: f = R / (R - 0.97/0.03), with R the ratio of the speeds. The limit is
// at least Step above the bytes that the last cycle left. It is at most half way from there to the
// most. A cycle beside the program starts above the limit, and a blocking one once live bytes
// exceed low by Hard.
//
// The Go heap is taken to stay as the last cycle left it, and the most to be the limit. The speed
// of the collector is that of the last cycle, over the Go heap and the external bytes. The
// program's speed is that of its external allocations. If the Go heap is not known, f has no
// effect. The zero value collects above 1.1 x low.
//
// Source: src/heap/heap-controller.cc (UpdateAllocationLimits, DynamicGrowingFactor,
// BoundAllocationLimit), v8/v8 14.8; flag external_memory_max_growing_factor; denoland/deno#35808.
type v8 struct {
	Step param.Size // least headroom
	Hard param.Size // growth that blocks

	low       int64   // least live bytes since the last cycle
	factor    float64 // f; 0 before the first cycle
	heap      int64   // of the last point
	allocated int64   // since the last cycle
	ended     float64 // end of the last cycle, ns
}

const (
	v8LeastFactor    = 1.1
	v8MostFactor     = 4.0
	v8ExternalFactor = 1.1
	v8Utilisation    = 0.97
)

func (p *v8) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Step, "step", param.Size{Bytes: 8 * miB}, param.SizeOr(8*miB), "least headroom"),
		param.Bind(&p.Hard, "hard", param.Size{Percent: 50}, param.SizeOr(0), "growth that blocks; a share needs a limit"),
	}
}

// Decide compares live bytes with the limit, less the Go heap. It must see every allocation, since
// the lowest level may have fallen before any of them.
func (p *v8) Decide(at policy.Point) policy.Decision {
	p.low = min(p.low, at.Sample.Live)
	p.heap, p.allocated = at.Heap, at.Allocated+at.Request
	if at.At != policy.Allocation {
		return policy.Decision{Reason: "not an allocation"}
	}
	factor := v8MostFactor
	if p.factor > 0 {
		factor = p.factor
	}
	limit := param.Bytes(float64(at.Heap)*(factor-1) + float64(p.low)*min(factor, v8ExternalFactor))
	limit = max(limit, at.LiveAfter+p.Step.Of(at.Sample.Limit))
	if most := at.Sample.Limit; most > 0 {
		limit = min(limit, at.LiveAfter/2+most/2)
	}
	hard := p.Hard.Of(at.Sample.Limit)
	switch live := granted(&at); {
	case hard > 0 && live-p.low > hard:
		return policy.Decision{Action: policy.Block, Reason: "hard limit"}
	case live <= limit:
		return policy.Decision{Reason: "below the limit"}
	}
	return overlap(&at, "above the limit")
}

// Observe computes the factor from the speeds.
func (p *v8) Observe(c policy.Cycle) {
	p.low, p.factor = c.LiveAfter, v8MostFactor
	marked, ran := float64(p.heap+c.LiveAfter+c.Freed), float64(c.Start)-p.ended
	if c.Duration > 0 && ran > 0 && p.allocated > 0 {
		ratio := marked / float64(c.Duration) / (float64(p.allocated) / ran)
		if a, b := ratio*(1-v8Utilisation), ratio*(1-v8Utilisation)-v8Utilisation; a < b*v8MostFactor {
			p.factor = max(a/b, v8LeastFactor)
		}
	}
	p.ended, p.allocated = float64(c.Start+c.Duration), 0
}

func (p *v8) String() string { return param.Text("v8", p.Params()) }
