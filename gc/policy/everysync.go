package policy

import "math"

// everySync blocks for a cycle at every Nth sync point: what programs do that
// call the collector by hand, once per training step (gotorch's torch.GC) or
// every other (FluxML/Flux.jl#2414). The zero value never collects.
//
// Source: tensor_gc.go, wangkuiyi/gotorch@9afed2f3ad; src/train.jl,
// FixedGCPacer, FluxML/Flux.jl@3f2f828b5.
type everySync struct {
	blocking
	N int64

	since int64 // sync points since the last one that collected
}

func (p *everySync) params() []Param {
	return []Param{bind(&p.N, "n", 1, integerKind(1, math.MaxInt64), "sync points from one cycle to the next"), p.overlapParam()}
}

// Decide counts sync points.
func (p *everySync) Decide(at Point) Decision {
	if at.At != Sync || p.N <= 0 {
		return Decision{Wake: math.MaxInt64, Reason: "not a sync point"}
	}
	if p.since++; p.since < p.N {
		return Decision{Wake: math.MaxInt64, Reason: "not its turn"}
	}
	p.since = 0
	return Decision{Action: p.action(at), Wake: math.MaxInt64, Reason: "sync point"}
}

func (p *everySync) Observe(Cycle) {}

func (p *everySync) String() string { return textOf("every-sync", p.params()) }
