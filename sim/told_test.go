package sim

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// An ear keeps what it is told.
type ear struct {
	policy.Policy
	limits map[int64]bool
	costs  map[time.Duration]bool
}

func (e *ear) Decide(p policy.Point) policy.Decision {
	e.limits[p.Sample.Limit], e.costs[p.Cost] = true, true
	return policy.Decision{Action: policy.Block}
}

func (e *ear) Observe(c policy.Cycle) { e.limits[c.Limit] = true }

// TestToldIsNotTheWorld: a policy is told another limit and cost, which change
// nothing else.
func TestToldIsNotTheWorld(t *testing.T) {
	w := sawtooth(t, 100)
	for _, m := range []*Machine{nil, MachineOf(Fixed(200), Ladder{Factor: 2})} {
		run := func(told Told) (Result, *ear) {
			e := &ear{Policy: policy.MustParse("always").New(), limits: map[int64]bool{}, costs: map[time.Duration]bool{}}
			return Run(w, e, Config{Limit: 1000, Cost: Fixed(200), Ladder: Ladder{Factor: 2}, Machine: m, Told: told}), e
		}
		truth, e := run(Told{})
		if !e.limits[1000] || !e.costs[200] || len(e.limits)+len(e.costs) != 2 {
			t.Errorf("the truth is %v, %v", e.limits, e.costs)
		}
		wrong, e := run(Told{Limit: 1.05, Cost: 0.5})
		if !e.limits[1050] || !e.costs[100] || len(e.limits)+len(e.costs) != 2 {
			t.Errorf("told %v, %v", e.limits, e.costs)
		}
		if truth != wrong {
			t.Errorf("the world is %+v, was %+v", wrong, truth)
		}
	}
}

// TestToldIsLearned: a policy is told what a collector would tell: before the first cycle what such cycles take elsewhere,
// then what they took, and a slowdown that is near the truth in the mean.
func TestToldIsLearned(t *testing.T) {
	w := sawtooth(t, 20000) // 100 bytes each us
	cost := Cost{Base: 500 * time.Microsecond, Slowdown: 0.25}
	for name, m := range map[string]*Machine{"base": nil, "machine": MachineOf(cost, Ladder{}), "noise": MachineOf(cost, Ladder{})} {
		if name == "noise" {
			m.Noise = Noise{0.5, 1.5}
		}
		log := &Log{KeepDecisions: true}
		Run(w, policy.MustParse("threshold:0.5,overlap=true").New(), Config{Limit: 4000, Cost: cost, Machine: m, Told: Told{Learned: true}, Log: log})
		first, mean, n := log.Decisions[0], 0.0, 0.0
		if want := policy.NewExpectation(1).Cost; first.Cost != want || first.Slowdown != 0 {
			t.Errorf("%s: told %v and %g before the first cycle, want %v", name, first.Cost, first.Slowdown, want)
		}
		differ := map[time.Duration]bool{}
		for _, d := range log.Decisions {
			if d.Cycles > 3 {
				differ[d.Cost] = true
				mean, n = mean+d.Slowdown, n+1
			}
		}
		if mean /= n; mean < 0.15 || mean > 0.35 {
			t.Errorf("%s: a slowdown of %g in the mean, want 0.25", name, mean)
		}
		if noisy := len(differ) > 2; noisy != (name == "noise") {
			t.Errorf("%s: told %d costs", name, len(differ))
		}
	}
}
