package comparators

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/gc/policy/param"
)

// goMemLimit models an advice of Go users and maintainers: move the runtime's own memory limit. The
// Go heap then has little room while the external headroom is small. Once in Every, the limit is
// set to the memory that Go uses plus Share of the headroom. The policy is for replays, because it
// models how the runtime answers. It assumes:
//
//   - the program allocates Handle bytes of Go heap with each external
//     allocation, and no others;
//   - a cycle keeps the same share of the Go heap as of the external bytes;
//   - GOGC is 100, and a mark is so short that it starts at the latest place that Go allows. That
//     is 61/64 of the way from the live heap to the goal, or 4 MiB before it.
//
// Go's limiter of collector time is left out: it stops assists, not cycles.
//
// It shows why this does not help. A cycle starts only where Go code allocates. Its goal is never
// below the live Go heap, nor closer than 1 MiB to the limit. With a large Handle it models the
// ballast of 100 kB that gotch adds to each tensor. The zero value never steers, and collects every
// two minutes, as Go does.
//
// Source: runtime/mgcpacer.go (memoryLimitHeapGoal, trigger), runtime/proc.go (forcegcperiod) of Go
// 1.26.8; golang/proposal design 48409.
type goMemLimit struct {
	Handle param.Size    // Go bytes per external allocation
	Share  float64       // of the headroom, 0..1
	Every  time.Duration // time between two settings of the limit

	heap     float64       // Go heap, dead objects included
	marked   float64       // its bytes that the last cycle kept
	goal     float64       // that follows from the memory limit; 0 before the first
	steered  time.Duration // when the limit was last set
	finished time.Duration // end of the last cycle
}

const (
	goHeapMinimum    = 4 * miB
	goMinHeadroom    = 1 * miB
	goHeadroomShare  = 0.03
	goLatestTrigger  = 61.0 / 64
	goForcedInterval = 2 * time.Minute
)

func (p *goMemLimit) Params() []param.Param {
	return []param.Param{
		param.Bind(&p.Handle, "handle", param.Size{Bytes: 1024}, param.SizeOr(1024), "Go heap bytes allocated with each external allocation"),
		param.Bind(&p.Share, "share", 0.01, param.Number(0, 1), "room given to the Go heap, as a share of the headroom"),
		param.Bind(&p.Every, "every", 100*time.Millisecond, param.Duration(), "time between two settings of the limit"),
	}
}

// Decide grows the modelled heap and asks whether Go's pacer would start. It must see every
// allocation.
func (p *goMemLimit) Decide(at policy.Point) policy.Decision {
	if at.At != policy.Allocation {
		return policy.Decision{Reason: "no Go allocation"}
	}
	p.heap += float64(p.Handle.Of(at.Sample.Limit))
	if at.Sample.Limit > 0 && p.Share > 0 && (p.goal == 0 || at.Now-p.steered >= p.Every) {
		p.goal, p.steered = p.limitGoal(p.Share*float64(max(0, at.Sample.Headroom()))), at.Now
	}
	switch {
	case at.Running:
		return policy.Decision{Reason: "cycle under way"}
	case at.Now-p.finished >= goForcedInterval:
		return policy.Decision{Action: policy.Overlap, Reason: "forced every two minutes"}
	case p.heap < p.trigger():
		return policy.Decision{Reason: "below Go's trigger"}
	}
	return policy.Decision{Action: policy.Overlap, Reason: "Go's trigger"}
}

// limitGoal is the heap goal under a memory limit of what Go uses plus room.
func (p *goMemLimit) limitGoal(room float64) float64 {
	goal := p.heap + room
	headroom := max(goHeadroomShare*goal, goMinHeadroom)
	return max(headroom, goal-headroom)
}

// trigger is the heap at which Go starts a cycle.
func (p *goMemLimit) trigger() float64 {
	goal := max(goHeapMinimum, 2*p.marked)
	if p.goal > 0 {
		goal = min(goal, p.goal)
	}
	return max(p.marked+goLatestTrigger*(goal-p.marked), goal-goHeapMinimum)
}

// Observe sweeps the modelled heap.
func (p *goMemLimit) Observe(c policy.Cycle) {
	if before := float64(c.LiveAfter) + float64(c.Freed); before > 0 {
		p.heap *= float64(c.LiveAfter) / before
	} else {
		p.heap = 0
	}
	p.marked, p.finished = p.heap, c.Start+c.Duration
}

func (p *goMemLimit) String() string { return param.Text("gomemlimit", p.Params()) }
