package comparators

import (
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// ocaml is the rule of OCaml 5 for custom blocks. An allocation of n bytes owes the part n / max of
// a cycle, and at most one:
//
//	max = heap x 2/3 x Ratio
//
// The factor 2/3 is there because memory that dies is freed 1.5 cycles later. Upstream pays the
// debt in slices, the first at a debt of 0.2; here a cycle beside the program starts once a whole
// one is owed. The heap is the Go heap, and 4 MiB where it is not known, which is the least that Go
// takes it for. The zero value collects at each allocation.
//
// Source: runtime/custom.c (caml_custom_get_max_major), runtime/memory.c (caml_adjust_gc_speed),
// runtime/caml/config.h (Custom_major_ratio_def, 44), ocaml/ocaml@fd41e1ab55; its effect where
// the heap is small: ocaml/ocaml#12460.
type ocaml struct {
	Ratio float64 // of external garbage to the heap

	debt float64 // in cycles
}

const leastHeap = 4 * miB

func (p *ocaml) Params() []param.Param {
	return []param.Param{param.Bind(&p.Ratio, "ratio", 0.44, param.Percent(), "external garbage to allow, as a share of the Go heap")}
}

// Decide adds the debt. It must see every allocation.
func (p *ocaml) Decide(at policy.Point) policy.Decision {
	if at.At != policy.Allocation {
		return policy.Decision{Reason: "not an allocation"}
	}
	most := max(1, p.Ratio*2/3*float64(max(at.Heap, leastHeap)))
	p.debt += min(1, float64(at.Request)/most)
	if p.debt < 1 {
		return policy.Decision{Reason: "less than a cycle owed"}
	}
	return overlap(&at, "a cycle owed")
}

// Observe pays the debt.
func (p *ocaml) Observe(policy.Cycle) { p.debt = 0 }

func (p *ocaml) String() string { return param.Text("ocaml", p.Params()) }

// oxcaml is the pacing of OxCaml. A word of external memory owes
//
//	(1 + 2 x 1.2) / Overhead
//
// words of work. A word of the heap costs 1 to sweep and 1.2 to mark. A cycle beside the program
// starts once its whole work is owed, so headroom is linear in the cost of a cycle. (The square
// root of the cost is proposed in oxcaml/oxcaml#3730.) A cycle's work follows from its expected
// cost: it passes Speed bytes of heap in a second. The default is a quarter of a millisecond for
// each MiB, as Go takes on two cores. The zero value collects at each allocation.
//
// Source: runtime/major_gc.c (gc_slice_work, GC_PACING_2025), oxcaml/oxcaml; 0.8 since #3543.
type oxcaml struct {
	Overhead float64
	Speed    param.Size // bytes a second
}

const oxcamlMark = 1.2 // work of marking a word; sweeping it is 1

func (p *oxcaml) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Overhead, "overhead", 0.8, param.Percent(), "space overhead: garbage to allow, as a share of live bytes"),
		param.Bind(&p.Speed, "speed", param.Size{Bytes: 4 << 30}, param.SizeOr(4<<30), "bytes of heap that a cycle passes in a second"),
	}
}

// Decide compares the work owed with that of a cycle.
func (p *oxcaml) Decide(at policy.Point) policy.Decision {
	if at.At != policy.Allocation {
		return policy.Decision{Reason: "not an allocation"}
	}
	heap := float64(p.Speed.Of(at.Sample.Limit)) * at.Cost.Seconds()
	work := heap * (1 + oxcamlMark)
	owed := float64(at.Allocated+at.Request) * (1 + 2*oxcamlMark)
	if owed < work*p.Overhead {
		return policy.Decision{Reason: "less than a cycle owed"}
	}
	return overlap(&at, "a cycle owed")
}

func (*oxcaml) Observe(policy.Cycle) {}

func (p *oxcaml) String() string { return param.Text("oxcaml", p.Params()) }
