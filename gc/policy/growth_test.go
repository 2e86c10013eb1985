package policy_test

import (
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// TestGrowthCountsFromTheLowestLevel frees memory by hand after a cycle has left 100 MiB. The next
// cycle starts at twice the lowest level since then.
func TestGrowthCountsFromTheLowestLevel(t *testing.T) {
	spec, err := policy.Parse("growth:1")
	if err != nil {
		t.Fatal(err)
	}
	p := spec.New()
	p.Observe(policy.Cycle{LiveAfter: 100 << 20})
	for _, step := range []struct {
		live int64 // MiB
		want policy.Action
	}{{150, policy.Skip}, {40, policy.Skip}, {60, policy.Skip}, {79, policy.Skip}, {80, policy.Overlap}} {
		at := policy.Point{Sample: pressure.Sample{Live: step.live << 20}, LiveAfter: 100 << 20}
		if d := p.Decide(at); d.Action != step.want {
			t.Errorf("at %d MiB: %v, want %v", step.live, d.Action, step.want)
		}
	}
}
