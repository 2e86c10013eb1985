package policy

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// The controls take little or no account of memory. A useful rule does better.

// never does not collect. It leaves an allocation that does not fit to the refusal ladder, and
// other garbage to the cycles of the Go runtime. A program without this library does the same, so
// it is the control in every comparison. Since the ladder runs a cycle, it also models java.nio's
// direct buffers (System.gc when memory is refused) and CuPy's pool (gc.collect).
//
// Source: java/nio/Bits.java, reserveMemory, openjdk/jdk@13cbbaafed; cupy/cuda/memory.pyx,
// _try_malloc, cupy/cupy@6b6d9563c4.
type never struct{}

// Decide skips for ever.
func (*never) Decide(Point) Decision { return Decision{Wake: math.MaxInt64, Reason: "never"} }

func (*never) Observe(Cycle) {}

func (p *never) String() string { return "never" }

// always blocks for a cycle at every sync point, and nowhere else. A recording made under it has
// the time of each drop to within one sync interval.
type always struct{ blocking }

func (p *always) Params() []param.Param { return []param.Param{param.Overlap(&p.Overlap)} }

// Decide blocks at sync points.
func (p *always) Decide(at Point) Decision {
	if at.At != Sync {
		return Decision{Wake: math.MaxInt64, Reason: "not a sync point"}
	}
	return Decision{Action: p.action(at), Wake: math.MaxInt64, Reason: "sync point"}
}

func (*always) Observe(Cycle) {}

func (p *always) String() string { return param.Text("always", p.Params()) }

// everySync blocks for a cycle at every Nth sync point. Programs call the collector by hand in this
// way: once per training step (gotorch's torch.GC), or at every other one (FluxML/Flux.jl#2414).
// The zero value never collects.
//
// Source: tensor_gc.go, wangkuiyi/gotorch@9afed2f3ad; src/train.jl, FixedGCPacer,
// FluxML/Flux.jl@3f2f828b5.
type everySync struct {
	blocking
	N int64

	since int64 // sync points since the last one that collected
}

func (p *everySync) Params() []param.Param {
	return []param.Param{param.Bind(&p.N, "n", 1, param.Integer(1), "sync points from one cycle to the next"), param.Overlap(&p.Overlap)}
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

func (p *everySync) String() string { return param.Text("every-sync", p.Params()) }

// periodic blocks for a cycle at the first allocation or sync point after Every has passed since it
// last did. The zero value never collects.
type periodic struct {
	blocking
	Every time.Duration

	last time.Duration // when it last decided to collect
}

func (p *periodic) Params() []param.Param {
	return []param.Param{param.Headline(param.Bind(&p.Every, "every", 10*time.Millisecond, param.Duration(), "time between the starts of two cycles")), param.Overlap(&p.Overlap)}
}

// Decide compares the clock with the last cycle's.
func (p *periodic) Decide(at Point) Decision {
	if p.Every <= 0 || at.Now-p.last < p.Every {
		return Decision{Reason: "within the period"}
	}
	p.last = at.Now
	return Decision{Action: p.action(at), Reason: "period over"}
}

func (p *periodic) Observe(Cycle) {}

func (p *periodic) String() string { return param.Text("periodic", p.Params()) }

// threshold blocks for a cycle at every allocation and sync point that finds pressure at Ratio or
// above. It ignores the yield of earlier cycles: a program whose reachable bytes stay above Ratio
// collects all the time. It never collects without a limit, and the zero value never does.
type threshold struct {
	blocking
	Ratio float64 // 0..1
}

func (p *threshold) Params() []param.Param {
	return []param.Param{param.Headline(param.Bind(&p.Ratio, "ratio", 0.8, param.Number(0, 1), "pressure (live / limit) that starts a cycle; 0 never does")), param.Overlap(&p.Overlap)}
}

// Decide compares live bytes with Ratio x limit.
func (p *threshold) Decide(at Point) Decision {
	trigger := toBytes(p.Ratio * float64(at.Sample.Limit))
	if trigger <= 0 {
		return Decision{Reason: "no limit"}
	}
	if at.Sample.Live < trigger {
		return Decision{Wake: trigger, Reason: "below threshold"}
	}
	return Decision{Action: p.action(at), Reason: "threshold"}
}

func (p *threshold) Observe(Cycle) {}

func (p *threshold) String() string { return param.Text("threshold", p.Params()) }
