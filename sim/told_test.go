package sim

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
)

// An ear keeps what it is told.
type ear struct {
	gc.Always
	limits map[int64]bool
	costs  map[time.Duration]bool
}

func (e *ear) Decide(p gc.Point) gc.Decision {
	e.limits[p.Sample.Limit], e.costs[p.Cost] = true, true
	return gc.Decision{Action: gc.Block}
}

func (e *ear) Observe(c gc.Cycle) { e.limits[c.Limit] = true }

// TestToldIsNotTheWorld: a policy is told another limit and cost, which change
// nothing else.
func TestToldIsNotTheWorld(t *testing.T) {
	w := sawtooth(t, 100)
	for _, m := range []*Machine{nil, MachineOf(Fixed(200), Ladder{Factor: 2})} {
		run := func(told Told) (Result, *ear) {
			e := &ear{limits: map[int64]bool{}, costs: map[time.Duration]bool{}}
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
