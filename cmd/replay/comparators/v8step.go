package comparators

import (
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// v8step is the rule of V8's AdjustAmountOfExternalAllocatedMemory before 14.8: see [v8]. It starts
// a cycle beside the program when live bytes exceed their lowest level since the last cycle by
// Soft. It blocks for one when they exceed that level by Hard.
//
// Upstream checks each 128 KiB of growth. Its Hard is half of the largest old generation; here that
// is half of the limit, and without a limit there is no Hard. Soft is upstream's 64 MiB, which
// suits one size of heap only: soft=1% is the scaled form. The zero value never collects.
//
// Source: src/heap/heap.cc (HandleExternalMemoryInterrupt), heap.h (ExternalMemoryAccounting),
// include/v8-internal.h (kExternalAllocationSoftLimit), v8/v8@068d19a3e4.
type v8step struct {
	Soft param.Size // growth that starts an overlapped cycle
	Hard param.Size // growth that blocks

	low int64 // least live bytes since the last cycle
}

func (p *v8step) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Soft, "soft", param.Size{Bytes: 64 * miB}, param.SizeOr(64*miB), "growth that starts an overlapped cycle"),
		param.Bind(&p.Hard, "hard", param.Size{Percent: 50}, param.SizeOr(0), "growth that blocks; a share needs a limit"),
	}
}

// Decide compares growth with both steps. It must see every allocation, since the lowest level may
// have fallen before any of them.
func (p *v8step) Decide(at policy.Point) policy.Decision {
	p.low = min(p.low, at.Sample.Live)
	if at.At != policy.Allocation {
		return policy.Decision{Reason: "not an allocation"}
	}
	growth := granted(&at) - p.low
	if hard := p.Hard.Of(at.Sample.Limit); hard > 0 && growth > hard {
		return policy.Decision{Action: policy.Block, Reason: "hard step"}
	}
	if soft := p.Soft.Of(at.Sample.Limit); soft <= 0 || growth <= soft {
		return policy.Decision{Reason: "below soft step"}
	}
	return overlap(&at, "soft step")
}

// Observe restarts the lowest level at the live bytes that the cycle left.
func (p *v8step) Observe(c policy.Cycle) { p.low = c.LiveAfter }

func (p *v8step) String() string { return param.Text("v8step", p.Params()) }
