package command_test

import (
	"github.com/eagergc/eagergc/cmd/replay/command"
	"github.com/eagergc/eagergc/gc/policy"
)

// Half collects whenever half of the limit is full.
type half struct{}

func (half) Observe(policy.Cycle) {}
func (half) String() string       { return "half" }
func (half) Decide(at policy.Point) policy.Decision {
	if !at.Running && at.Sample.Live > at.Sample.Limit/2 {
		return policy.Decision{Action: policy.Overlap, Reason: "half is full"}
	}
	return policy.Decision{Reason: "below half"}
}

// A program with a policy of your own. All commands then know the policy: go run . compare
// --policies half,never,pacer.
func Example() {
	policy.Register("half", "collects once half of the limit is full", func() policy.Policy { return half{} })
	command.Main()
}
