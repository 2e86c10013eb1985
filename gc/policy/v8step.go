package policy

// v8step is the rule of V8's AdjustAmountOfExternalAllocatedMemory before 14.8
// (March 2026), which counts external bytes towards the heap's own goal instead:
// start a cycle beside
// the program when live bytes exceed their lowest level since the last cycle
// by Soft, and block for one when they exceed it by Hard. That level falls when
// live bytes do.
//
// Upstream checks each 128 KiB of growth. Its Hard is half of the largest old
// generation; here that is half of the limit, and without a limit there is no
// Hard. Soft is upstream's 64 MiB, which suits one size of heap only: soft=1% is
// the scaled form. The zero value never collects.
//
// Source: src/heap/heap.cc (HandleExternalMemoryInterrupt), heap.h
// (ExternalMemoryAccounting), include/v8-internal.h
// (kExternalAllocationSoftLimit), v8/v8@068d19a3e4.
type v8step struct {
	Soft size // growth that starts an overlapped cycle
	Hard size // growth that blocks

	low int64 // least live bytes since the last cycle
}

func (p *v8step) params() []Param {
	return []Param{
		bind(&p.Soft, "soft", size{Bytes: 64 * miB}, sizeKind(64*miB), "growth that starts an overlapped cycle"),
		bind(&p.Hard, "hard", size{Percent: 50}, sizeKind(0), "growth that blocks; a share needs a limit"),
	}
}

// Decide compares growth with both steps. It must see every allocation, since
// the lowest level may have fallen before any of them.
func (p *v8step) Decide(at Point) Decision {
	p.low = min(p.low, at.Sample.Live)
	if at.At != Allocation {
		return Decision{Reason: "not an allocation"}
	}
	growth := granted(&at) - p.low
	if hard := p.Hard.Of(at.Sample.Limit); hard > 0 && growth > hard {
		return Decision{Action: Block, Reason: "hard step"}
	}
	if soft := p.Soft.Of(at.Sample.Limit); soft <= 0 || growth <= soft {
		return Decision{Reason: "below soft step"}
	}
	if at.Running {
		return Decision{Reason: "cycle under way"}
	}
	return Decision{Action: Overlap, Reason: "soft step"}
}

// Observe restarts the lowest level at the live bytes that the cycle left.
func (p *v8step) Observe(c Cycle) { p.low = c.LiveAfter }

func (p *v8step) String() string { return textOf("v8step", p.params()) }
