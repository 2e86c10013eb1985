package comparators

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// dotnet is .NET's GC.AddMemoryPressure. It starts a cycle beside the program when the bytes
// allocated since the last one reach a budget. The budget is Budget for the first four cycles. Then
// it is multiplied by the ratio of bytes added to bytes removed, over the last three intervals
// between cycles. The ratio is within 1 and 10: the less cycles free, the longer the rule waits.
// Two starts are at least five times a cycle's length apart, so that cycles take at most 20 % of
// the time. Bytes removed are those that the program gave back and those that a cycle freed. The
// latter count in the interval after the cycle, as finalizers do upstream.
//
// The budget is at least a third of the Go heap, if that is known. (Upstream takes the managed
// heap.) Budget is upstream's 4 MiB; budget=0.4% (limit / 256) is the scaled form. The zero value
// never collects.
//
// Source: src/coreclr/vm/comutilnative.cpp (GCInterface), dotnet/runtime@02dcca1100.
type dotnet struct {
	Budget param.Size // least bytes allocated between two cycles

	added, removed [dotnetSlots]int64 // bytes per interval, the present one included
	interval       int                // cycles so far
	carry          int64              // yield of the last cycle
	last           time.Duration      // start of the last cycle
	cost           time.Duration      // its length
}

const (
	dotnetSlots    = 4
	dotnetMaxRatio = 10
	dotnetDuty     = 5
)

func (p *dotnet) Params() []param.Param {
	return []param.Param{param.Bind(&p.Budget, "budget", param.Size{Bytes: 4 * miB}, param.SizeOr(4*miB), "least bytes allocated between two cycles")}
}

// Decide compares the bytes allocated since the last cycle with the budget. It must see every
// allocation, since bytes that come and go count.
func (p *dotnet) Decide(at policy.Point) policy.Decision {
	least := p.Budget.Of(at.Sample.Limit)
	if least <= 0 {
		return policy.Decision{Wake: math.MaxInt64, Reason: "no budget"}
	}
	slot := p.interval % dotnetSlots
	p.added[slot], p.removed[slot] = at.Allocated+at.Request, p.carry+at.Freed
	switch added := p.added[slot]; {
	case at.At != policy.Allocation:
		return policy.Decision{Reason: "not an allocation"}
	case added < max(p.budget(least, slot), at.Heap/3):
		return policy.Decision{Reason: "within budget"}
	case p.interval > 0 && at.Now-p.last <= dotnetDuty*p.cost:
		return policy.Decision{Reason: "duty cycle"}
	}
	return overlap(&at, "budget")
}

// budget scales the least budget by how little past cycles removed, in steps of 1/1024.
func (p *dotnet) budget(least int64, slot int) int64 {
	if p.interval < dotnetSlots {
		return least
	}
	var added, removed int64
	for i := range dotnetSlots {
		if i != slot {
			added += p.added[i]
			removed += p.removed[i]
		}
	}
	switch {
	case added >= dotnetMaxRatio*removed:
		return dotnetMaxRatio * least
	case added > removed:
		return added * 1024 / removed * least / 1024
	}
	return least
}

// Observe opens the next interval. Cycles of others count too.
func (p *dotnet) Observe(c policy.Cycle) {
	p.interval++
	slot := p.interval % dotnetSlots
	p.carry = c.Freed
	p.added[slot], p.removed[slot] = 0, c.Freed
	p.last, p.cost = c.Start, c.Duration
}

func (p *dotnet) String() string { return param.Text("dotnet", p.Params()) }
