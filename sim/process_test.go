package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

// A process that is held at any moments does what a run does.
func TestProcessIsARun(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, tr := range programs(t, 1, "ragged", "server", "decoder", "solver", "idler") {
		w, err := sim.Compile(tr, sim.SpaceOf(tr))
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range []string{"never", "pacer", "cudajl", "sqrt"} {
			cfg := sim.Config{Limit: w.PeakReachable * 3 / 2, Cost: sim.Cost{Base: 3 * time.Millisecond, Slowdown: float64(len(policy)%2) / 2}, Ladder: sim.Ladder{Factor: 2}}
			want := sim.Run(w, gc.MustParse(policy).New(), cfg)
			p := sim.Start(w, gc.MustParse(policy).New(), cfg)
			var now time.Duration
			for p.Until(now) {
				now += time.Duration(r.ExpFloat64() * float64(w.Span) / 200)
				p.SetLimit(cfg.Limit)
				if s := p.Standing(); s.Live < 0 || s.Live > s.Grown || s.Ended {
					t.Fatalf("%s under %s at %v: %+v", w.Name, policy, now, s)
				}
			}
			if got := p.Result(); got != want || !p.Standing().Ended {
				t.Errorf("%s under %s: %+v, want %+v", w.Name, policy, got, want)
			}
		}
	}
}

// A limit that falls is found by the next allocation, one that rises ends the refusals.
func TestProcessLimitMoves(t *testing.T) {
	tr := programs(t, 1, "training")[0]
	w, err := sim.Compile(tr, sim.SpaceOf(tr))
	if err != nil {
		t.Fatal(err)
	}
	refusals := func(limits ...int64) int {
		p := sim.Start(w, gc.MustParse("never").New(), sim.Config{Limit: limits[0], Cost: sim.Fixed(time.Millisecond), Ladder: sim.Ladder{Factor: 2}})
		for i, l := range limits {
			p.SetLimit(l)
			p.Until(time.Duration(i+1) * w.Span / time.Duration(len(limits)))
		}
		p.Until(time.Hour)
		return p.Result().RefusalCollections
	}
	low, high := w.PeakReachable*5/4, w.PeakReachable*100
	tight, half, roomy := refusals(low, low), refusals(high, low), refusals(high, high)
	if roomy >= half || half >= tight {
		t.Errorf("%d refusals in a tight limit, %d if it is tight from the middle on, %d in a roomy one", tight, half, roomy)
	}
}
