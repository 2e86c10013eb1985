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
		for _, p := range []string{"pacer", "threshold:0.5,overlap=true"} { // which is hardly asked between cycles, and so learns costs alone
			m := MachineOf(cost, Ladder{})
			m.Noise = noise
			log := &Log{KeepDecisions: true}
			Run(w, policy.MustParse(p).New(), Config{Limit: 400000, Cost: cost, Machine: m, Told: Told{Learned: true}, Log: log})
			first, mean, cycle, n, costs := log.Decisions[0], 0.0, 0.0, 0.0, map[time.Duration]bool{}
			for _, d := range log.Decisions {
				if d.Cycles > 3 {
					mean, cycle, n, costs[d.Cost] = mean+d.Slowdown, cycle+float64(d.Cost), n+1, true
				}
			}
			if want := policy.NewExpectation(1).Cost; first.Cost != want || first.Slowdown != 0 {
				t.Errorf("%s, %s: told %v and %g before the first cycle, want %v", name, p, first.Cost, first.Slowdown, want)
			}
			if cycle = cycle / n / float64(cost.Base); cycle < 0.8 || cycle > 1.2 || p != "pacer" && len(costs) > 2 != (name == "noise") {
				t.Errorf("%s, %s: cycles of %g times their length in the mean; %d costs", name, p, cycle, len(costs))
			}
			if mean /= n; p == "pacer" && (mean < 0.15 || mean > 0.35) {
				t.Errorf("%s: a slowdown of %g in the mean, want 0.25", name, mean)
			}
		}
	}
}
