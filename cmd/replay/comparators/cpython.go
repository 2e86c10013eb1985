package comparators

import (
	"math"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// cpython is the rule of CPython, which counts container objects and no bytes. A young collection
// runs once more than 700 containers were allocated since the last collection. After more than ten
// young collections, the next one includes the middle generation. After more than ten collections
// of the middle generation, the next one is full. It is put off while fewer objects wait for a full
// collection than a quarter of the objects that the last one kept.
//
// Each allocation here makes Per containers, and all of them survive young collections. These are
// only counted, because Go has none. A full cycle keeps the same share of the objects as of the
// bytes. With Freeze, a cycle runs after so many allocations, and the objects that it keeps count
// no more: warm programs call gc.collect and gc.freeze. Upstream's cycles become cheaper by it,
// which is not modelled. The zero value never collects.
//
// Source: Python/gc.c (gc_select_generation, gc_freeze), python/cpython 3.14.5; bpo#4074. The
// incremental collector of 3.14.0 was taken back in 3.14.5. Threshold 0 is 2000 in newer versions.
type cpython struct {
	Per    int64 // containers for each allocation
	Freeze int64 // allocations; 0 = never

	counts    [3]int64 // of containers, and of collections of the generation below
	young     int64    // containers that no collection of the middle generation has seen
	pending   int64    // those that wait for a full one
	old       int64    // those that the last full one kept
	allocated int64    // allocations so far
	freezes   bool     // the cycle that was asked for does
}

const cpythonYoung, cpythonOlder = 700, 10

func (p *cpython) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Per, "per", 1, param.Integer(1), "container objects made with each allocation"),
		param.Bind(&p.Freeze, "freeze", 0, param.Integer(0), "allocations after which what a cycle keeps counts no more; 0 = never"),
	}
}

// Decide counts containers. It must see every allocation.
func (p *cpython) Decide(at policy.Point) policy.Decision {
	if p.Per <= 0 {
		return policy.Decision{Wake: math.MaxInt64, Reason: "no containers"}
	}
	if at.At != policy.Allocation {
		return policy.Decision{Reason: "not an allocation"}
	}
	p.counts[0] += p.Per
	p.young += p.Per
	if p.allocated++; p.allocated == p.Freeze {
		p.freezes = true
		return policy.Decision{Action: policy.Block, Reason: "freeze"}
	}
	switch {
	case p.counts[0] <= cpythonYoung:
		return policy.Decision{Reason: "few containers"}
	case p.counts[2] > cpythonOlder && p.pending >= p.old/4:
		return policy.Decision{Action: policy.Block, Reason: "full collection"}
	case p.counts[1] > cpythonOlder:
		p.counts = [3]int64{0, 0, p.counts[2] + 1}
		p.pending, p.young = p.pending+p.young, 0
		return policy.Decision{Reason: "collection of the middle generation"}
	}
	p.counts[0] = 0
	p.counts[1]++
	return policy.Decision{Reason: "young collection"}
}

// Observe makes the objects old that the cycle kept.
func (p *cpython) Observe(c policy.Cycle) {
	kept := 1.
	if all := float64(c.LiveAfter) + float64(c.Freed); all > 0 {
		kept = float64(c.LiveAfter) / all
	}
	p.old = int64(math.Round(kept * float64(p.old+p.pending+p.young)))
	if p.freezes {
		p.old, p.freezes = 0, false
	}
	p.counts, p.pending, p.young = [3]int64{}, 0, 0
}

func (p *cpython) String() string { return param.Text("cpython", p.Params()) }
