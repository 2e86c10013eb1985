package mine

import (
	"time"

	"github.com/eagergc/eagergc/gc"
)

// Mine collects beside the program once Share of the limit is live, and not again
// before a cycle has paid for itself.
type Mine struct {
	last  time.Duration // when the last cycle started
	freed int64
}

const share = 0.8

func (p *Mine) Decide(point gc.Point) gc.Decision {
	limit := float64(point.Sample.Limit)
	live := float64(point.Sample.Live + point.Request)
	switch {
	case point.Running:
		return gc.Decision{Reason: "a cycle is under way"}
	case point.WillBlock && point.Wait >= point.Cost && live > limit/2:
		return gc.Decision{Action: gc.Overlap, Reason: "it hides behind the wait"}
	case live < share*limit:
		return gc.Decision{Wake: int64(share * limit), Reason: "there is room"}
	}
	if p.freed < point.Sample.Limit/100 && point.Now-p.last < 4*point.Cost {
		return gc.Decision{Reason: "the last cycle freed little"}
	}
	return gc.Decision{Action: gc.Overlap, Reason: "little room is left"}
}

func (p *Mine) Observe(cycle gc.Cycle) {
	p.last, p.freed = cycle.Start, cycle.Freed
}

func (p *Mine) String() string { return "mine" }
