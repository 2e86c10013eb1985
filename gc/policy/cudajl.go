package policy

import "time"

// cudajl is the eager collection rule of CUDA.jl: collect, blocking, once
// pressure has reached 0.75, or 0.50 where the caller is about to wait, as
// long as collector time stays within 5 % of the time since the last decision
// to collect. That bound doubles for each of: the last cycle freed more than a
// tenth of the limit; the caller is about to wait; pressure above 0.90;
// pressure above 0.95. The cost of a cycle is 0.75 of the old estimate and
// 0.25 of the new one, from 0. Only the cycles it asked for count, and it
// never collects while no limit is known. The zero value is ready to use.
//
// With Poll, a wait counts only if it is longer: CUDA.jl polls the device before
// it waits, some 50 us, and says that it will block only once it found the device
// busy. That CUDA.jl's cycles are young collections, GC.gc(false), cheaper than a
// full one, can only be replayed, with Young: Go has full collections alone, and
// ours, even so, find all that has died. What is still ours is that a Wait is
// known beforehand.
//
// Source: CUDACore/src/memory.jl, maybe_collect, JuliaGPU/CUDA.jl@fd1008df.
// Upstream's limit is the hard limit, else the soft one, else a fresh estimate
// every 10 s; here it is whatever the Sample says.
type cudajl struct {
	blocking
	Poll  time.Duration // a wait no longer than this does not count as one
	Young float64       // cost of its cycles, as a share of a full one's; 0 = a full one's

	last  time.Duration // when it last decided to collect
	cost  float64       // smoothed cost of a cycle, ns
	freed int64         // yield of the last cycle
}

const (
	cudajlPressure     = 0.75
	cudajlWaitPressure = 0.50
	cudajlShare        = 0.05
	cudajlYield        = 0.10
	cudajlHigh         = 0.90
	cudajlHigher       = 0.95
	cudajlKeep         = 0.75
)

func (p *cudajl) params() []Param {
	return []Param{
		bind(&p.Poll, "poll", 0, waitKind(), "a wait no longer than this does not count as one: CUDA.jl polls about 50us"),
		bind(&p.Young, "young", 1, numberKind(0, 1), "replays only: cost of its young collections, as a share of a full one's"),
		p.overlapParam(),
	}
}

// CycleShare is the cost of the policy's cycles, as a share of a full one's.
func (p *cudajl) CycleShare() float64 { return p.Young }

// Decide is maybe_collect.
func (p *cudajl) Decide(at Point) Decision {
	if p.Overlap && at.Running {
		return Decision{Reason: "cycle under way"}
	}
	limit, waits := at.Sample.Limit, at.WillBlock && (p.Poll == 0 || at.Wait > p.Poll)
	wake := wakeBelow(cudajlPressure * float64(limit))
	pressure, least := at.Sample.Pressure(), cudajlPressure
	if waits {
		least = cudajlWaitPressure
	}
	if pressure < least {
		return Decision{Wake: wake, Reason: "low pressure"}
	}
	share := cudajlShare
	if float64(p.freed) > cudajlYield*float64(limit) {
		share *= 2
	}
	if waits {
		share *= 2
	}
	if pressure > cudajlHigh {
		share *= 2
	}
	if pressure > cudajlHigher {
		share *= 2
	}
	// With no time since the last cycle this is Inf, or NaN before the first
	// one, which is above no bound: as upstream, the first cycle always runs.
	if p.cost/float64(at.Now-p.last) > share {
		return Decision{Wake: wake, Reason: "too soon"}
	}
	p.last = at.Now
	return Decision{Action: p.action(at), Reason: "pressure"}
}

// Observe learns from the cycles that Decide asked for.
func (p *cudajl) Observe(c Cycle) {
	if c.Trigger != TriggerPolicy {
		return
	}
	p.cost = cudajlKeep*p.cost + (1-cudajlKeep)*float64(c.Duration)
	p.freed = c.Freed
}

func (p *cudajl) String() string { return textOf("cudajl", p.params()) }
