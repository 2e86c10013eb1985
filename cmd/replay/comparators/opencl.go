package comparators

import (
	"math"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// openCL is the rule of the R package OpenCL. It collects, blocking, once live bytes exceed
// Trigger. If they still exceed it after the cycle, collecting was futile, and the policy stops
// until live bytes exceed High. Above High every allocation collects. Upstream stays in the futile
// state for ever; with Reset the policy leaves it once a point finds live bytes at Trigger or
// below.
//
// Upstream is off by default and leaves both bounds to the user; the defaults here are ours. The
// zero value never collects.
//
// Source: src/wrap.c (mkBuffer), man/oclMemLimits.Rd, s-u/OpenCL@a8a9679.
type openCL struct {
	blocking
	Trigger param.Size // live bytes above which a cycle is tried
	High    param.Size // live bytes above which every allocation collects; 0 = none
	Reset   bool       // leave the futility zone below Trigger

	futile bool  // the last cycle left more than Trigger
	bound  int64 // Trigger, in bytes
}

func (p *openCL) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Trigger, "trigger", param.Size{Percent: 75}, param.SizeOr(0), "live bytes above which to collect, unless in vain; a share needs a limit"),
		param.Bind(&p.High, "high", param.Size{Percent: 95}, param.SizeOr(0), "live bytes above which to collect in any case"),
		param.Bind(&p.Reset, "reset", false, param.Bool(), "forget that collecting was in vain once live bytes are back at the trigger"),
		param.Overlap(&p.Overlap),
	}
}

// Decide compares live bytes, without the request, with both bounds.
func (p *openCL) Decide(at policy.Point) policy.Decision {
	trigger, high, live := p.Trigger.Of(at.Sample.Limit), p.High.Of(at.Sample.Limit), at.Sample.Live
	if trigger <= 0 {
		return policy.Decision{Reason: "no trigger"}
	}
	if high <= 0 {
		high = math.MaxInt64
	}
	p.bound = trigger
	if p.Reset && live <= trigger {
		p.futile = false
	}
	switch {
	case at.At != policy.Allocation:
		return policy.Decision{Reason: "not an allocation"}
	case live > high:
		return policy.Decision{Action: p.action(at), Reason: "above high mark"}
	case live > trigger && !p.futile:
		return policy.Decision{Action: p.action(at), Reason: "above trigger"}
	case p.futile && p.Reset: // must see live bytes fall
		return policy.Decision{Reason: "futility zone"}
	case p.futile:
		return policy.Decision{Wake: high, Reason: "futility zone"}
	}
	return policy.Decision{Wake: min(trigger, high), Reason: "below trigger"}
}

// Observe enters the futile state if a cycle of the policy's own left live bytes above Trigger.
func (p *openCL) Observe(c policy.Cycle) {
	if c.Trigger == policy.TriggerPolicy && c.LiveAfter > p.bound {
		p.futile = true
	}
}

func (p *openCL) String() string { return param.Text("opencl", p.Params()) }
