package policy

import (
	"math"
	"time"
)

// The controls: rules that take little account, or none, of memory. A rule that is worth
// anything does better.

// never does not collect. An allocation that does not fit is left to the refusal
// ladder, and all other garbage to the cycles of the Go runtime. It is what a
// program has without this library, and the control in every comparison. Since
// the ladder runs a cycle, it is also what java.nio's direct buffers do (System.gc
// when memory is refused) and CuPy's pool (gc.collect).
//
// Source: java/nio/Bits.java, reserveMemory, openjdk/jdk@13cbbaafed;
// cupy/cuda/memory.pyx, _try_malloc, cupy/cupy@6b6d9563c4.
type never struct{}

// Decide skips for ever.
func (*never) Decide(Point) Decision { return Decision{Wake: math.MaxInt64, Reason: "never"} }

func (*never) Observe(Cycle) {}

func (p *never) String() string { return "never" }

// always blocks for a cycle at every sync point, and nowhere else. In a
// recording made under it, the time of each drop is right to within one sync
// interval.
type always struct{ blocking }

func (p *always) params() []Param { return []Param{p.overlapParam()} }

// Decide blocks at sync points.
func (p *always) Decide(at Point) Decision {
	if at.At != Sync {
		return Decision{Wake: math.MaxInt64, Reason: "not a sync point"}
	}
	return Decision{Action: p.action(at), Wake: math.MaxInt64, Reason: "sync point"}
}

func (*always) Observe(Cycle) {}

func (p *always) String() string { return textOf("always", p.params()) }

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

// periodic blocks for a cycle at the first allocation or sync point after
// Every has passed since it last did. The zero value never collects.
type periodic struct {
	blocking
	Every time.Duration

	last time.Duration // when it last decided to collect
}

func (p *periodic) params() []Param {
	return []Param{headline(bind(&p.Every, "every", 10*time.Millisecond, durationKind(), "time between the starts of two cycles")), p.overlapParam()}
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

func (p *periodic) String() string { return textOf("periodic", p.params()) }

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

// threshold blocks for a cycle at every allocation and sync point that finds
// pressure at Ratio or above. It takes no account of what earlier cycles freed: a
// program whose reachable bytes stay above Ratio collects all the time. It never
// collects without a limit, and the zero value never does.
type threshold struct {
	blocking
	Ratio float64 // 0..1
}

func (p *threshold) params() []Param {
	return []Param{headline(bind(&p.Ratio, "ratio", 0.8, numberKind(0, 1), "pressure (live / limit) that starts a cycle; 0 never does")), p.overlapParam()}
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

func (p *threshold) String() string { return textOf("threshold", p.params()) }
