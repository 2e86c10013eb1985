package gc

import "time"

// CUDAjl is the eager collection rule of CUDA.jl: collect, blocking, once
// pressure has reached 0.75, or 0.50 where the caller is about to wait, as
// long as collector time stays within 5 % of the time since the last decision
// to collect. That bound doubles for each of: the last cycle freed more than a
// tenth of the limit; the caller is about to wait; pressure above 0.90;
// pressure above 0.95. The cost of a cycle is 0.75 of the old estimate and
// 0.25 of the new one, from 0. Only the cycles it asked for count, and it
// never collects while no limit is known. The zero value is ready to use.
//
// Source: CUDACore/src/memory.jl, maybe_collect, JuliaGPU/CUDA.jl@fd1008df.
// Upstream's limit is the hard limit, else the soft one, else a fresh estimate
// every 10 s; here it is whatever the Sample says.
type CUDAjl struct {
	noParams
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

// Decide is maybe_collect.
func (p *CUDAjl) Decide(at Point) Decision {
	limit := at.Sample.Limit
	wake := wakeBelow(cudajlPressure * float64(limit))
	pressure, least := at.Sample.Pressure(), cudajlPressure
	if at.WillBlock {
		least = cudajlWaitPressure
	}
	if pressure < least {
		return Decision{Wake: wake, Reason: "low pressure"}
	}
	share := cudajlShare
	if float64(p.freed) > cudajlYield*float64(limit) {
		share *= 2
	}
	if at.WillBlock {
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
	return Decision{Action: Block, Reason: "pressure"}
}

// Observe learns from the cycles that Decide asked for.
func (p *CUDAjl) Observe(c Cycle) {
	if c.Trigger != TriggerPolicy {
		return
	}
	p.cost = cudajlKeep*p.cost + (1-cudajlKeep)*float64(c.Duration)
	p.freed = c.Freed
}

// String returns cudajl.
func (p *CUDAjl) String() string { return textOf("cudajl", nil) }
