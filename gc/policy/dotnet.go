package policy

import (
	"math"
	"time"
)

// dotnet is .NET's GC.AddMemoryPressure: start a cycle beside the program when
// the bytes allocated since the last one reach a budget. The budget is Budget
// for the first four cycles, then Budget times the ratio of bytes added to
// bytes removed over the last three intervals between cycles, within 1 and 10:
// the less cycles free, the longer it waits. After a cycle starts, the next one
// waits for at least five times its length, so that cycles take at most 20 % of
// the time. Bytes removed are those that the program gave back and those that a
// cycle freed. The latter count in the interval after the cycle, as finalizers
// do upstream.
//
// Upstream raises the budget to a third of the managed heap. That is left out: a
// Go heap of handles is too small to matter, and a Point does not carry it. Budget
// is upstream's 4 MiB; budget=0.4% (limit / 256) is the scaled form. The zero
// value never collects.
//
// Source: src/coreclr/vm/comutilnative.cpp (GCInterface), dotnet/runtime@02dcca1100.
type dotnet struct {
	Budget size // least bytes allocated between two cycles

	added, removed [dotnetSlots]int64 // bytes per interval, the present one included
	interval       int                // cycles so far
	carry          int64              // what the last cycle freed
	last           time.Duration      // start of the last cycle
	cost           time.Duration      // its length
}

const (
	dotnetSlots    = 4
	dotnetMaxRatio = 10
	dotnetDuty     = 5
)

func (p *dotnet) params() []Param {
	return []Param{bind(&p.Budget, "budget", size{Bytes: 4 * miB}, sizeKind(4*miB), "least bytes allocated between two cycles")}
}

// Decide compares what was allocated since the last cycle with the budget. It
// must see every allocation, since bytes that come and go count.
func (p *dotnet) Decide(at Point) Decision {
	least := p.Budget.Of(at.Sample.Limit)
	if least <= 0 {
		return Decision{Wake: math.MaxInt64, Reason: "no budget"}
	}
	slot := p.interval % dotnetSlots
	p.added[slot], p.removed[slot] = at.Allocated+at.Request, p.carry+at.Freed
	switch added := p.added[slot]; {
	case at.At != Allocation:
		return Decision{Reason: "not an allocation"}
	case added < p.budget(least, slot):
		return Decision{Reason: "within budget"}
	case p.interval > 0 && at.Now-p.last <= dotnetDuty*p.cost:
		return Decision{Reason: "duty cycle"}
	case at.Running:
		return Decision{Reason: "cycle under way"}
	}
	return Decision{Action: Overlap, Reason: "budget"}
}

// budget scales the least budget by how little past cycles removed, in steps
// of 1/1024.
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
func (p *dotnet) Observe(c Cycle) {
	p.interval++
	slot := p.interval % dotnetSlots
	p.carry = c.Freed
	p.added[slot], p.removed[slot] = 0, c.Freed
	p.last, p.cost = c.Start, c.Duration
}

func (p *dotnet) String() string { return textOf("dotnet", p.params()) }
