package sim

import (
	"fmt"
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

// TestMachineStays: sums of a run under caps whose policy is told what is learned. Others mean that costs, caps or the series are different.
func TestMachineStays(t *testing.T) {
	w, log := sawtooth(t, 5000), &Log{KeepDecisions: true}
	m := &Machine{Start: 20e3, Mark: Linear{1e5, 300, 1e6}, Settle: Linear{1000, 200, 100}, Ladder: 5e4, Heap: 64 << 20, Stretch: 1.5, Slowdown: 0.3, Cores: 4, Work: 0.2}
	r := Run(w, policy.MustParse("threshold:0.5,overlap=true").New(), Config{Limit: 30000, Machine: m, Told: Told{Learned: true}, Log: log})
	cost, work, garbage := 0.0, 0.0, 0.0
	for _, d := range log.Decisions {
		cost, work = cost+float64(d.Cost), work+float64(d.Work)
	}
	levels := w.Series(log, r.Elapsed, 10)
	for _, l := range levels {
		garbage += float64(l.Garbage)
	}
	log.Cycles = append(log.Cycles, Collected{Cycle: policy.Cycle{Freed: 1, LiveAfter: 99}}, Collected{Cycle: policy.Cycle{Freed: 1, LiveAfter: 100}}) // the last one is wasted
	got := fmt.Sprintf("%.4g %.4g %v %d+%d %d %.4g %d", cost, work, r.Ladder, r.Collections, r.RefusalCollections, len(levels), garbage, log.Wasted())
	if got != "4.014e+09 8.028e+08 233.5µs 29+0 37 7.955e+05 1" {
		t.Error(got)
	}
}
