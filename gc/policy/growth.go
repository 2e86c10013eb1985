package policy

import (
	"math"

	"github.com/eagergc/eagergc/gc/policy/param"
)

// growth collects when an allocation would bring live bytes to (1 + Factor) times their lowest level
// since the last cycle. It is the rule of Go's pacer, with GOGC = 100 x Factor, for external bytes.
// Goals below Min x Factor are raised to it. The limit plays no part. Relatives have these factors:
// PyPy 0.82, SpiderMonkey 0.5, Guile 1.
//
// The level at the end of a mark would include the garbage that the mark has just found, because
// finalizers run later. The goal would then double at each cycle. V8 takes the lowest level since
// the mark for that reason, and so do this rule and the patch of Go in cmd/research/extmem.
//
// Go starts a cycle before the goal, by as many bytes as it expects to allocate during the mark.
// That number follows from the Go heap and has no counterpart here. The zero value never collects.
//
// Source: runtime/mgcpacer.go of Go 1.26.8 (heapminimum 4 MiB at GOGC=100); external_low in
// src/heap/heap-controller.cc of V8 14.8.
type growth struct {
	Factor  float64
	Min     param.Size // heap minimum
	Overlap bool       // run beside the program, as Go's collector does

	low int64 // the least live bytes since the last cycle
}

func (p *growth) Params() []param.Param {
	return []param.Param{
		param.Headline(param.Bind(&p.Factor, "factor", 1, param.Number(0, 1e6), "growth over the bytes that the last cycle left that starts a cycle; 0 never does")),
		param.Bind(&p.Min, "min", param.Size{Bytes: 4 * miB}, param.SizeOr(4*miB), "heap minimum: no goal is below min x factor"),
		param.Bind(&p.Overlap, "overlap", true, param.Bool(), "run the cycle beside the program"),
	}
}

// Decide compares live bytes with the goal. It must see every allocation, for the lowest level.
func (p *growth) Decide(at Point) Decision {
	if p.Factor <= 0 {
		return Decision{Wake: math.MaxInt64, Reason: "factor 0"}
	}
	p.low = min(p.low, at.Sample.Live)
	goal := max(toBytes((1+p.Factor)*float64(p.low)), toBytes(p.Factor*float64(p.Min.Of(at.Sample.Limit))))
	if at.At != Allocation || granted(&at) < goal {
		return Decision{Reason: "below goal"}
	}
	return startCycle(at, p.Overlap, "goal")
}

// Observe starts anew from the bytes that the cycle left.
func (p *growth) Observe(c Cycle) { p.low = c.LiveAfter }

func (p *growth) String() string { return param.Text("growth", p.Params()) }
