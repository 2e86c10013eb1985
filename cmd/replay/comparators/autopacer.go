package comparators

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// autoPacer is the pacer of Flux's training loop. It knows only the clock. If steps are longer than
// Hide, it takes a collection to be hidden and collects at every step. If they are shorter, it
// collects every T_gc / (Share x T_step) steps, and at least every 4096. This keeps the collector's
// share of time near Share. The interval grows by one a step towards that number, and halves after
// a step that takes three times as long as usual. T_gc and T_step are averages that keep 0.9 of
// their old value. A step is the time between two sync points, without the cycle at its start. The
// policy decides at sync points only, and blocks. The zero value collects at all of them.
//
// Source: src/train.jl (AutoGCPacer), FluxML/Flux.jl@3f2f828b5.
type autoPacer struct {
	blocking
	Hide  time.Duration
	Share float64 // 0..1

	step     float64       // smoothed length of a step, ns; 0 before the first
	cost     float64       // smoothed cost of a cycle, ns; 0 before the first
	interval float64       // steps between cycles
	since    float64       // steps since the last cycle
	begin    time.Duration // of the present step
}

const (
	autoPacerKeep  = 0.9
	autoPacerSpike = 3
	autoPacerMax   = 4096
)

func (p *autoPacer) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Hide, "hide", 5*time.Millisecond, param.Duration(), "length of a step that hides a collection"),
		param.Bind(&p.Share, "share", 0.02, param.Number(0, 1), "collector's share of time aimed at where steps are shorter"),
		param.Overlap(&p.Overlap),
	}
}

// Decide ends a step.
func (p *autoPacer) Decide(at policy.Point) policy.Decision {
	if at.At != policy.Sync {
		return policy.Decision{Wake: math.MaxInt64, Reason: "not a sync point"}
	}
	step := float64(at.Now - p.begin)
	p.begin = at.Now
	spike := p.step > 0 && step > autoPacerSpike*p.step
	p.step = smooth(p.step, step, autoPacerKeep)
	if p.interval = max(1, p.interval); spike {
		p.interval = max(1, math.Floor(p.interval/2))
	} else {
		p.interval = min(p.interval+1, p.base())
	}
	if p.since++; p.since < p.interval {
		return policy.Decision{Wake: math.MaxInt64, Reason: "within the interval"}
	}
	p.since = 0
	return policy.Decision{Action: p.action(at), Wake: math.MaxInt64, Reason: "interval over"}
}

// base is the interval to grow to.
func (p *autoPacer) base() float64 {
	if p.step >= float64(p.Hide) || p.cost == 0 || p.step == 0 {
		return 1
	}
	return min(max(1, math.RoundToEven(p.cost/(p.Share*p.step))), autoPacerMax)
}

// Observe learns the cost of the policy's own cycles. The next step begins when the program goes
// on.
func (p *autoPacer) Observe(c policy.Cycle) {
	if c.Trigger == policy.TriggerPolicy {
		p.cost = smooth(p.cost, float64(c.Duration), autoPacerKeep)
		p.begin += c.Exposed
	}
}

func (p *autoPacer) String() string { return param.Text("autopacer", p.Params()) }
