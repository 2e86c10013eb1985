package sim

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// TestToldIsLearned: a policy is told what a collector would tell: before the first cycle what such cycles take elsewhere,
// then what they took, and a slowdown that is near the truth in the mean.
func TestToldIsLearned(t *testing.T) {
	w := sawtooth(t, 200000) // 100 bytes each us
	cost := Cost{Base: 500 * time.Microsecond, Slowdown: 0.25}
	for name, noise := range map[string]Noise{"machine": nil, "noise": {0.5, 1.5}} {
		m := MachineOf(cost, Ladder{})
		m.Noise = noise
		log := &Log{KeepDecisions: true}
		Run(w, policy.MustParse("threshold:0.5,overlap=true").New(), Config{Limit: 400000, Cost: cost, Machine: m, Told: Told{Learned: true}, Log: log})
		first, mean, n, costs := log.Decisions[0], 0.0, 0.0, map[time.Duration]bool{}
		for _, d := range log.Decisions {
			if d.Cycles > 3 {
				mean, n, costs[d.Cost] = mean+d.Slowdown, n+1, true
			}
		}
		if want := policy.NewExpectation(1).Cost; first.Cost != want || first.Slowdown != 0 {
			t.Errorf("%s: told %v and %g before the first cycle, want %v", name, first.Cost, first.Slowdown, want)
		}
		if mean /= n; mean < 0.15 || mean > 0.35 || len(costs) > 2 != (name == "noise") {
			t.Errorf("%s: a slowdown of %g in the mean, want 0.25; %d costs", name, mean, len(costs))
		}
	}
}
