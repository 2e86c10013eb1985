package policy

import "math"

// growth collects when an allocation would bring live bytes to (1 + Factor)
// times what the last cycle left: Go's own rule, GOGC = 100 x Factor, applied
// to external bytes. Goals below Min x Factor are raised to it. The limit
// plays no part. Factors of its relatives: PyPy 0.82, SpiderMonkey 0.5,
// CPython 0.25, Guile 1.
//
// Go starts earlier than at the goal, by as much as it expects to allocate
// during the mark; that runway follows from the Go heap and has no counterpart
// here. The zero value never collects.
//
// Source: runtime/mgcpacer.go of Go 1.26.8 (heapminimum 4 MiB at GOGC=100).
type growth struct {
	Factor  float64
	Min     size // heap minimum
	Overlap bool // run beside the program, as Go's collector does
}

func (p *growth) params() []Param {
	return []Param{
		headline(bind(&p.Factor, "factor", 1, numberKind(0, 1e6), "growth over what the last cycle left that starts a cycle; 0 never does")),
		bind(&p.Min, "min", size{Bytes: 4 * miB}, sizeKind(4*miB), "heap minimum: no goal is below min x factor"),
		bind(&p.Overlap, "overlap", true, boolKind(), "run the cycle beside the program"),
	}
}

// Decide compares live bytes with the goal.
func (p *growth) Decide(at Point) Decision {
	if p.Factor <= 0 {
		return Decision{Wake: math.MaxInt64, Reason: "factor 0"}
	}
	goal := max(toBytes((1+p.Factor)*float64(at.LiveAfter)), toBytes(p.Factor*float64(p.Min.Of(at.Sample.Limit))))
	if at.At != Allocation || granted(&at) < goal {
		return Decision{Wake: goal, Reason: "below goal"}
	}
	return startCycle(at, p.Overlap, "goal")
}

func (p *growth) Observe(Cycle) {}

func (p *growth) String() string { return textOf("growth", p.params()) }
