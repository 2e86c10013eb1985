// A policy of your own beside all others. In a folder with a go.mod:
//
//	go mod init mine && go get github.com/eagergc/eagergc/cmd/replay@latest
//	go run . compare --policies mine,never,pacer
package main

import (
	"time"

	"github.com/eagergc/eagergc/cmd/replay/command"
	"github.com/eagergc/eagergc/gc/policy"
)

func main() {
	policy.Register("mine", "collects beside the program when its rule says so", func() policy.Policy { return new(mine) })
	command.Main()
}

// rule says when to collect. Bytes: live, limit, and since the last cycle allocated; yield,
// which that cycle freed. Seconds: wait, for which the program is about to wait anyway; cost
// of a cycle; since the last one.
func rule(live, limit, allocated, yield, wait, cost, since float64) bool {
	return live > 0.8*limit && allocated > 0.1*limit || wait > cost && live > 0.5*limit
}

type mine struct {
	last  time.Duration // when the last cycle started
	yield int64         // bytes that it freed
}

func (p *mine) Decide(at policy.Point) policy.Decision {
	live, limit := float64(at.Sample.Live+at.Request), float64(at.Sample.Limit)
	if !at.Running && rule(live, limit, float64(at.Allocated), float64(p.yield), at.Wait.Seconds(), at.Cost.Seconds(), (at.Now-p.last).Seconds()) {
		return policy.Decision{Action: policy.Overlap, Reason: "the rule"}
	}
	const steps = 500 // of the limit: the rule is asked again at an allocation a step further up
	return policy.Decision{Wake: at.Sample.Live + at.Sample.Limit/steps, Reason: "not yet"}
}

func (p *mine) Observe(c policy.Cycle) { p.last, p.yield = c.Start, c.Freed }

func (p *mine) String() string { return "mine" }
