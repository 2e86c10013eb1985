package policy

import "time"

// goMemLimit models what Go users and maintainers do or advise: move the
// runtime's own memory limit, so that the Go heap has little room where the
// external headroom is small. Once in Every, the limit is set to what Go uses
// plus Share of the headroom. [goMemLimit.Steer] does that to the real runtime.
// The policy itself is for replays: it models how the runtime answers, since no
// Point carries the Go heap. It assumes:
//
//   - the program allocates Handle bytes of Go heap with each external
//     allocation, and no others;
//   - a cycle keeps the same share of the Go heap as of the external bytes;
//   - GOGC=100, and a mark so short that it starts at the latest place that Go
//     allows, 61/64 of the way from the live heap to the goal, or 4 MiB before it.
//
// Go's limiter of collector time is left out: it stops assists, not cycles.
//
// It shows why this does not help: a cycle starts only where Go code allocates,
// and its goal is never below the live Go heap, nor closer than 1 MiB to the
// limit. With a large Handle it models the ballast of 100 kB that gotch adds to
// each tensor. The zero value never steers, and collects every two
// minutes, as Go does.
//
// Source: runtime/mgcpacer.go (memoryLimitHeapGoal, trigger), runtime/proc.go
// (forcegcperiod) of Go 1.26.8; golang/proposal design 48409.
type goMemLimit struct {
	Handle int64         // Go bytes per external allocation
	Share  float64       // of the headroom, 0..1
	Every  time.Duration // time between two settings of the limit

	heap     float64       // Go heap, dead objects included
	marked   float64       // what the last cycle kept of it
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

func (p *goMemLimit) params() []Param {
	return []Param{
		bind(&p.Handle, "handle", 1024, bytesKind(), "Go heap bytes allocated with each external allocation"),
		bind(&p.Share, "share", 0.01, numberKind(0, 1), "room given to the Go heap, as a share of the headroom"),
		bind(&p.Every, "every", 100*time.Millisecond, durationKind(), "time between two settings of the limit"),
	}
}

// Decide grows the modelled heap and asks whether Go's pacer would start. It
// must see every allocation.
func (p *goMemLimit) Decide(at Point) Decision {
	if at.At != Allocation {
		return Decision{Reason: "no Go allocation"}
	}
	p.heap += float64(p.Handle)
	if at.Sample.Limit > 0 && p.Share > 0 && (p.goal == 0 || at.Now-p.steered >= p.Every) {
		p.goal, p.steered = p.limitGoal(p.Share*float64(max(0, at.Sample.Headroom()))), at.Now
	}
	switch {
	case at.Running:
		return Decision{Reason: "cycle under way"}
	case at.Now-p.finished >= goForcedInterval:
		return Decision{Action: Overlap, Reason: "forced every two minutes"}
	case p.heap < p.trigger():
		return Decision{Reason: "below Go's trigger"}
	}
	return Decision{Action: Overlap, Reason: "Go's trigger"}
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
func (p *goMemLimit) Observe(c Cycle) {
	if before := float64(c.LiveAfter) + float64(c.Freed); before > 0 {
		p.heap *= float64(c.LiveAfter) / before
	} else {
		p.heap = 0
	}
	p.marked, p.finished = p.heap, c.Start+c.Duration
}

func (p *goMemLimit) String() string { return textOf("gomemlimit", p.params()) }
