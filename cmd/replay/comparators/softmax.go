package comparators

import (
	"math"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// softmax is the rule of Lua torch, the first to collect for the sake of a GPU. It blocks for a
// cycle when live bytes exceed a soft maximum. If more than 0.8 of the maximum is still live
// afterwards, the maximum grows by 1.4. It never falls, and limit and cost play no part. So once
// much has been reachable, the rule no longer acts.
//
// Upstream checks only when a thread's unreported change has reached 1 MB, to save an atomic
// addition. Max is upstream's 300 MB; a share such as max=25% is the scaled form. The zero value
// never collects.
//
// Source: lib/THC/THCGeneral.c (maybeTriggerGC), torch/cutorch@5e9d86cb98; lib/TH/THGeneral.c,
// torch/torch7@814ea4afd6.
type softmax struct {
	blocking
	Max param.Size // first soft maximum

	max     int64 // the soft maximum; 0 before the first point
	request int64 // of the allocation that collected, which upstream has counted by then
}

const (
	softmaxFull = 0.8
	softmaxGrow = 1.4
)

func (p *softmax) Params() []param.Param {
	return []param.Param{param.Bind(&p.Max, "max", param.Size{Bytes: 3e8}, param.SizeOr(3e8), "first soft maximum of live bytes"), param.Overlap(&p.Overlap)}
}

// Decide compares live bytes with the soft maximum.
func (p *softmax) Decide(at policy.Point) policy.Decision {
	if p.max == 0 {
		p.max = p.Max.Of(at.Sample.Limit)
	}
	if p.max <= 0 {
		return policy.Decision{Wake: math.MaxInt64, Reason: "no soft maximum"}
	}
	if at.At != policy.Allocation || granted(&at) <= p.max {
		return policy.Decision{Wake: p.max, Reason: "below soft maximum"}
	}
	p.request = at.Request
	return policy.Decision{Action: p.action(at), Reason: "soft maximum"}
}

// Observe raises the soft maximum after a cycle of the policy's own.
func (p *softmax) Observe(c policy.Cycle) {
	if c.Trigger == policy.TriggerPolicy && float64(c.LiveAfter+p.request) > softmaxFull*float64(p.max) {
		p.max = param.Bytes(softmaxGrow * float64(p.max))
	}
}

func (p *softmax) String() string { return param.Text("softmax", p.Params()) }
