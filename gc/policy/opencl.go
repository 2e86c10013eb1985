package policy

import "math"

// openCL is the rule of the R package OpenCL. It collects, blocking, once live
// bytes exceed Trigger. If they still exceed it after the cycle, collecting was
// futile, and the policy stops until live bytes exceed High. Above High every
// allocation collects. Upstream stays in the futile state for ever; with Reset
// the policy leaves it once a point finds live bytes at Trigger or below.
//
// Upstream is off by default and leaves both bounds to the user; the defaults
// here are ours. The zero value never collects.
//
// Source: src/wrap.c (mkBuffer), man/oclMemLimits.Rd, s-u/OpenCL@a8a9679.
type openCL struct {
	blocking
	Trigger size // live bytes above which a cycle is tried
	High    size // live bytes above which every allocation collects; 0 = none
	Reset   bool // leave the futility zone below Trigger

	futile bool  // the last cycle left more than Trigger
	bound  int64 // Trigger, in bytes
}

func (p *openCL) params() []Param {
	return []Param{
		bind(&p.Trigger, "trigger", size{Percent: 75}, sizeKind(0), "live bytes above which to collect, unless in vain; a share needs a limit"),
		bind(&p.High, "high", size{Percent: 95}, sizeKind(0), "live bytes above which to collect in any case"),
		bind(&p.Reset, "reset", false, boolKind(), "forget that collecting was in vain once live bytes are back at the trigger"),
		p.overlapParam(),
	}
}

// Decide compares live bytes, without the request, with both bounds.
func (p *openCL) Decide(at Point) Decision {
	trigger, high, live := p.Trigger.Of(at.Sample.Limit), p.High.Of(at.Sample.Limit), at.Sample.Live
	if trigger <= 0 {
		return Decision{Reason: "no trigger"}
	}
	if high <= 0 {
		high = math.MaxInt64
	}
	p.bound = trigger
	if p.Reset && live <= trigger {
		p.futile = false
	}
	switch {
	case at.At != Allocation:
		return Decision{Reason: "not an allocation"}
	case live > high:
		return Decision{Action: p.action(at), Reason: "above high mark"}
	case live > trigger && !p.futile:
		return Decision{Action: p.action(at), Reason: "above trigger"}
	case p.futile && p.Reset: // must see live bytes fall
		return Decision{Reason: "futility zone"}
	case p.futile:
		return Decision{Wake: high, Reason: "futility zone"}
	}
	return Decision{Wake: min(trigger, high), Reason: "below trigger"}
}

// Observe enters the futile state if a cycle of the policy's own left live bytes
// above Trigger.
func (p *openCL) Observe(c Cycle) {
	if c.Trigger == TriggerPolicy && c.LiveAfter > p.bound {
		p.futile = true
	}
}

func (p *openCL) String() string { return textOf("opencl", p.params()) }
