package mine

import (
	"time"

	"github.com/eagergc/eagergc/gc"
)

// rule says when to collect, beside the program. Bytes: live, limit, and since the
// last cycle allocated; yield, which that cycle freed. Seconds: wait, for which the
// program is about to wait anyway; cost of a cycle; since the last one.
func rule(live, limit, allocated, yield, wait, cost, since float64) bool {
	return live > 0.8*limit && allocated > 0.1*limit || wait > cost && live > 0.5*limit
}

// Mine collects when its rule says so.
type Mine struct {
	last  time.Duration // when the last cycle started
	yield int64         // what it freed
}

func (p *Mine) Decide(point gc.Point) gc.Decision {
	live, limit := float64(point.Sample.Live+point.Request), float64(point.Sample.Limit)
	allocated, yield := float64(point.Allocated), float64(p.yield)
	wait, cost, since := point.Wait.Seconds(), point.Cost.Seconds(), (point.Now - p.last).Seconds()
	if !point.Running && rule(live, limit, allocated, yield, wait, cost, since) {
		return gc.Decision{Action: gc.Overlap, Reason: "the rule"}
	}
	const steps = 500 // of the limit: the rule is asked again at an allocation a step further up
	return gc.Decision{Wake: point.Sample.Live + point.Sample.Limit/steps, Reason: "not yet"}
}

func (p *Mine) Observe(cycle gc.Cycle) { p.last, p.yield = cycle.Start, cycle.Freed }

func (p *Mine) String() string { return "mine" }
