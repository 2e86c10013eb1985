package policy

import "math"

// softmax is the rule of Lua torch, the first to collect for the sake of a
// GPU: collect, blocking, when live bytes exceed a soft maximum; if more than
// 0.8 of the maximum is still live afterwards, raise it by 1.4. The maximum
// never falls, and neither the limit nor the cost of a cycle plays a part: once
// much has been reachable, the rule no longer acts.
//
// Upstream checks only when a thread's unreported change has reached 1 MB, to
// save an atomic addition. Max is upstream's 300 MB; a share such as max=25%
// is the scaled form. The zero value never collects.
//
// Source: lib/THC/THCGeneral.c (maybeTriggerGC), torch/cutorch@5e9d86cb98;
// lib/TH/THGeneral.c, torch/torch7@814ea4afd6.
type softmax struct {
	blocking
	Max size // first soft maximum

	max     int64 // the soft maximum; 0 before the first point
	request int64 // of the allocation that collected, which upstream has counted by then
}

const (
	softmaxFull = 0.8
	softmaxGrow = 1.4
)

func (p *softmax) params() []Param {
	return []Param{bind(&p.Max, "max", size{Bytes: 3e8}, sizeKind(3e8), "first soft maximum of live bytes"), p.overlapParam()}
}

// Decide compares live bytes with the soft maximum.
func (p *softmax) Decide(at Point) Decision {
	if p.max == 0 {
		p.max = p.Max.Of(at.Sample.Limit)
	}
	if p.max <= 0 {
		return Decision{Wake: math.MaxInt64, Reason: "no soft maximum"}
	}
	if at.At != Allocation || granted(&at) <= p.max {
		return Decision{Wake: p.max, Reason: "below soft maximum"}
	}
	p.request = at.Request
	return Decision{Action: p.action(at), Reason: "soft maximum"}
}

// Observe raises the soft maximum after a cycle of the policy's own.
func (p *softmax) Observe(c Cycle) {
	if c.Trigger == TriggerPolicy && float64(c.LiveAfter+p.request) > softmaxFull*float64(p.max) {
		p.max = toBytes(softmaxGrow * float64(p.max))
	}
}

func (p *softmax) String() string { return textOf("softmax", p.params()) }
