package comparators

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// imgproxy is the ticker of imgproxy: a cycle beside the program every ten seconds
// (debug.FreeOSMemory), whatever has happened. The zero value never collects.
//
// Source: IMGPROXY_FREE_MEMORY_INTERVAL, docs.imgproxy.net, 3.30 and 4-beta.1.
type imgproxy struct {
	Every time.Duration

	next time.Duration // tick
}

func (p *imgproxy) Params() []param.Param {
	return []param.Param{param.Bind(&p.Every, "every", 10*time.Second, param.Duration(), "time between two ticks")}
}

// Decide starts a cycle at the first point after a tick. A tick beside a cycle is lost.
func (p *imgproxy) Decide(at policy.Point) policy.Decision {
	if p.Every <= 0 {
		return policy.Decision{Wake: math.MaxInt64, Reason: "no ticker"}
	}
	p.next = max(p.next, p.Every)
	if at.Now < p.next {
		return policy.Decision{Reason: "before the tick"}
	}
	p.next = at.Now - at.Now%p.Every + p.Every
	return overlap(&at, "tick")
}

func (*imgproxy) Observe(policy.Cycle) {}

func (p *imgproxy) String() string { return param.Text("imgproxy", p.Params()) }

// eve is the rule of EVE's zedbox: a cycle beside the program on an event of memory pressure of its
// control group. Two cycles are at least ten seconds apart. In between, memory must have grown by
// 50 MB and by a fifth of the last yield. The kernel sends such events while it reclaims memory
// near the limit. Here each allocation that would bring live bytes above Event is one. The zero
// value never collects.
//
// Source: lf-edge/eve#4294.
type eve struct {
	Event param.Size // live bytes from which on the kernel sends events

	next  time.Duration // earliest time of the next cycle
	freed int64         // by the last one
}

const (
	eveApart  = 10 * time.Second
	eveGrowth = 50_000_000
	eveShare  = 0.2
)

func (p *eve) Params() []param.Param {
	return []param.Param{param.Bind(&p.Event, "event", param.Size{Percent: 95}, param.SizeOr(0), "live bytes above which there is memory pressure; a share needs a limit")}
}

// Decide handles an event.
func (p *eve) Decide(at policy.Point) policy.Decision {
	event := p.Event.Of(at.Sample.Limit)
	grown := granted(&at) - at.LiveAfter
	switch {
	case event <= 0:
		return policy.Decision{Reason: "no events"}
	case at.At != policy.Allocation || granted(&at) <= event:
		return policy.Decision{Wake: event, Reason: "no event"}
	case at.Now < p.next:
		return policy.Decision{Reason: "too soon"}
	case grown < max(eveGrowth, int64(eveShare*float64(p.freed))):
		return policy.Decision{Reason: "has grown little"}
	case at.Running:
		return policy.Decision{Reason: "cycle under way"}
	}
	p.next = at.Now + eveApart
	return policy.Decision{Action: policy.Overlap, Reason: "memory pressure"}
}

// Observe notes the yield of the policy's own cycle.
func (p *eve) Observe(c policy.Cycle) {
	if c.Trigger == policy.TriggerPolicy {
		p.freed = c.Freed
	}
}

func (p *eve) String() string { return param.Text("eve", p.Params()) }

// steps is the rule of frameworks for training that switch Python's own rule off: a blocking cycle
// at every Nth step. A step is a sync point. torchtitan collects every 50 steps by default, and
// NeMo's recipes every 100. Others take 1000: nemo:n=1000. torchtitan collects young objects alone;
// here each cycle is a full one. The zero value never collects.
//
// Source: gc_freq in torchtitan/config, torchtitan/tools/utils.py (GarbageCollection),
// pytorch/torchtitan@02581674d9; gc_interval_train in nemo/collections/llm/recipes, NVIDIA/NeMo.
type steps struct {
	blocking
	N int64

	name  string
	usual int64 // N by default
	since int64 // steps since the last cycle
}

func (p *steps) Params() []param.Param {
	return []param.Param{param.Bind(&p.N, "n", p.usual, param.Integer(1), "steps from one cycle to the next"), param.Overlap(&p.Overlap)}
}

// Decide counts sync points.
func (p *steps) Decide(at policy.Point) policy.Decision {
	if at.At != policy.Sync || p.N <= 0 {
		return policy.Decision{Wake: math.MaxInt64, Reason: "not a step"}
	}
	if p.since++; p.since < p.N {
		return policy.Decision{Wake: math.MaxInt64, Reason: "not its turn"}
	}
	p.since = 0
	return policy.Decision{Action: p.action(at), Wake: math.MaxInt64, Reason: "its turn"}
}

func (*steps) Observe(policy.Cycle) {}

func (p *steps) String() string { return param.Text(p.name, p.Params()) }
