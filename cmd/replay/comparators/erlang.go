package comparators

import (
	"math"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// erlang is the virtual binary heap of the BEAM. It blocks for a cycle when live bytes would exceed
// the size of a virtual heap. After each cycle that size grows by 1.618 until LiveAfter is at most
// three quarters of it. It halves if LiveAfter is less than a quarter, and is never below Min.
//
// Upstream keeps one such heap for each process and generation, in words; here there is one, in
// bytes. Min is upstream's: 32768 words, which its size table rounds to 46422. That is small for a
// device: a share such as min=1% is the scaled form. The zero value never collects.
//
// Source: erts/emulator/beam/erl_gc.c (do_next_vheap_size), erl_gc.h (ERTS_IS_GC_DESIRED_INTERNAL),
// erlang/otp@26bb8c8a2a.
type erlang struct {
	blocking
	Min param.Size // least and first size of the virtual heap

	size int64 // of the virtual heap; 0 before the first point
}

func (p *erlang) Params() []param.Param {
	return []param.Param{param.Bind(&p.Min, "min", param.Size{Bytes: 46422 * 8}, param.SizeOr(46422*8), "least and first size of the virtual heap"), param.Overlap(&p.Overlap)}
}

// Decide compares live bytes with the virtual heap.
func (p *erlang) Decide(at policy.Point) policy.Decision {
	least := p.Min.Of(at.Sample.Limit)
	if least <= 0 {
		return policy.Decision{Wake: math.MaxInt64, Reason: "no virtual heap"}
	}
	p.size = max(p.size, least)
	if at.At != policy.Allocation || granted(&at) <= p.size {
		return policy.Decision{Wake: p.size, Reason: "virtual heap not full"}
	}
	return policy.Decision{Action: p.action(at), Reason: "virtual heap full"}
}

// Observe resizes the virtual heap.
func (p *erlang) Observe(c policy.Cycle) {
	left := c.LiveAfter
	if left < p.size/4 {
		p.size /= 2
	}
	for left/3 > p.size/4 {
		grown := param.Bytes(1.618 * float64(p.size))
		if grown <= p.size {
			return // not used yet, or as large as it gets
		}
		p.size = grown
	}
}

func (p *erlang) String() string { return param.Text("erlang", p.Params()) }
