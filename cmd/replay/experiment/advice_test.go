package experiment

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

func question(t *testing.T, policies string, cycle time.Duration) Question {
	t.Helper()
	tr, err := samples.Open("mlp")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Compile(tr)
	if err != nil {
		t.Fatal(err)
	}
	who, err := ParseContenders(policies)
	if err != nil {
		t.Fatal(err)
	}
	world := func(limit int64) sim.Config {
		return sim.Config{Limit: limit, Cost: sim.Fixed(cycle), Ladder: sim.Ladder{Factor: 2}}
	}
	return Question{Workload: w, Policies: who, World: world, Variants: 4}
}

// TestAdviceIsNotGivenInPart: a search that is ended on its way gives none.
func TestAdviceIsNotGivenInPart(t *testing.T) {
	for at, policies := range map[float64]string{0.1: "never,cudajl,pacer", 0.5: "never,cudajl,pacer", 0.7: "never,cudajl,pacer", 0.9: "never,cudajl,pacer", 0.4: "pacer"} {
		q := question(t, policies, 10*time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		q.Progress = func(share float64) {
			if share > at {
				cancel()
			}
			if share > 1 {
				t.Errorf("progress of %v", share)
			}
		}
		if a, err := q.Advise(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("ended after %v: %+v, %v", at, a, err)
		}
	}
}

// What is advised holds when it is replayed, less would not do, and no larger limit than there is memory
// for is named; asked again, the answer is the same.
func TestAdviceHolds(t *testing.T) {
	for _, most := range []int64{0, 1 << 30, 1536 << 20, 2 << 30, 2100 << 20, 3 << 30} {
		q := question(t, "never,cudajl,pacer,optimum-overlap", 10*time.Millisecond)
		q.Most = most
		a, err := q.Advise(t.Context())
		if most > 0 && most < 1800<<20 {
			if !errors.Is(err, ErrNoAdvice) {
				t.Errorf("%d bytes: %+v, %v", most, a, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		c := a.Choice
		if c.Policy != a.Policy || c.Refusals != 0 || c.Failed != 0 || c.Lost > DefaultLost || c.Core <= 0 || c.Held > c.Lost || c.Cycles == 0 || c.Slowed != 0 {
			t.Errorf("%d bytes: the advised policy: %+v", most, c)
		}
		if a.Least > c.Needs || c.Needs > a.Most || a.Limit < c.Needs || a.Least < a.Reachable || a.Reachable != q.Workload.PeakReachable || a.Memory != most || most > 0 && a.Limit > most || most == 0 && a.Limit < a.Most {
			t.Errorf("%d bytes: limits %+v", most, a)
		}
		if (most == 0 || most == 3<<30) != (a.Unmet == 0) || a.Variants != 4 || a.Cycle != 10*time.Millisecond || a.Bound != DefaultLost {
			t.Errorf("%d bytes: worlds %+v", most, a)
		}
		if len(a.Others) != 2 || a.Others[0].Lost > a.Others[1].Lost {
			t.Errorf("other policies %+v: an optimum is no advice", a.Others)
		}
		for _, o := range append(a.Others, c) {
			p, err := ParseContender(o.Policy)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := p.Run(q.Workload, q.World(a.Limit))
			if o.Lost != float64(r.Objective())/float64(r.Span) || o.Exposed != r.ExposedPause || o.Longest != r.MaxPause || o.Cycles != r.Collections+r.RefusalCollections || o.P99 > o.Longest {
				t.Errorf("%+v at %d bytes, which gives %+v", o, a.Limit, r)
			}
			if o.Needs == 0 {
				continue
			}
			if less, _ := p.Run(q.Workload, q.World(o.Needs*99/100)); most == 0 && o == c && less.RefusalCollections == 0 && q.lost(&less) <= DefaultLost {
				t.Errorf("%s does with less than %d bytes", p, o.Needs)
			}
			if r, _ = p.Run(q.Workload, q.World(o.Needs)); r.FailedAllocs > 0 || q.lost(&r) > max(c.Lost, DefaultLost) || most > 0 && o.Needs > most {
				t.Errorf("%s loses %v at the %d bytes that it needs", o.Policy, q.lost(&r), o.Needs)
			}
		}
		if again, err := q.Advise(t.Context()); err != nil || again.Limit != a.Limit || again.Choice != a.Choice {
			t.Errorf("asked again: %+v, %v", again, err)
		}
	}
	short := question(t, "never", time.Microsecond) // what refusals cost is within the bound
	if a, err := short.Advise(t.Context()); err != nil || a.Choice.Refusals > 0 {
		t.Errorf("with short cycles: %+v, %v", a, err)
	}
	if Known(5, 7, 9) != 5 || Known(0, 7, 9) != 9 || Known(0, 7, 3) != 7 {
		t.Error("a device bounds limits, else the larger of this machine's memory and the recorded program's")
	}
}
