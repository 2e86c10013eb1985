package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// bruteBlocking tries every subset of the points: the definition of the optimum.
func bruteBlocking(w *Workload, cfg Config) (time.Duration, bool) {
	best, found := time.Duration(0), false
	for set := 0; set < 1<<len(w.points); set++ {
		s := schedule{}
		for i := range w.points {
			if set>>i&1 == 1 {
				s.steps = append(s.steps, step{i, policy.Block})
			}
		}
		r := runSchedule(w, "brute", s, cfg)
		if r.RefusalCollections == 0 && (!found || r.ExposedPause < best) {
			best, found = r.ExposedPause, true
		}
	}
	return best, found
}

func TestOptimumBlockingIsTheLeast(t *testing.T) {
	check(t, 100, func(t *random) {
		w := genWorkload(t, t.coin())
		if len(w.points) > 12 {
			return // too many subsets
		}
		cfg := Config{
			Limit:  int64((0.8 + t.Float64()*(3-0.8)) * float64(w.PeakReachable)),
			Cost:   Fixed(time.Duration(between[int64](t, 0, 40))),
			Ladder: Ladder{Factor: 2},
		}
		if cfg.Limit == 0 {
			return // 0 is no limit
		}
		want, ok := bruteBlocking(w, cfg)
		s, err := optimumBlocking(w, cfg.Limit, cfg.Cost)
		if ok != (err == nil) || err != nil && !errors.Is(err, ErrNoSchedule) {
			t.Fatalf("brute force %v, %v", ok, err)
		}
		if !ok {
			return
		}
		r := runSchedule(w, "optimum-blocking", s, cfg)
		if s.Exposed != want || r.ExposedPause != want || r.RefusalCollections != 0 {
			t.Fatalf("optimum %v, run %+v, brute force %v", s.Exposed, r, want)
		}
	})
}

func TestOptimumBlockingProperties(t *testing.T) {
	check(t, 100, func(t *random) {
		w := genWorkload(t, t.coin())
		if w.PeakReachable == 0 {
			return // no bytes
		}
		limit := int64((1 + t.Float64()*(3-1)) * float64(w.PeakReachable))
		g := time.Duration(between[int64](t, 0, 40))
		at := func(limit int64, g time.Duration) time.Duration {
			s, err := optimumBlocking(w, limit, Fixed(g))
			if err != nil {
				t.Fatal(err)
			}
			return s.Exposed
		}
		best := at(limit, g)
		if longer := at(limit, g+1); longer < best {
			t.Fatalf("a longer cycle made it %v from %v", longer, best)
		}
		if bigger := at(limit+1, g); bigger > best {
			t.Fatalf("a bigger limit made it %v from %v", bigger, best)
		}
		cfg := Config{Limit: limit, Cost: Fixed(g), Ladder: Ladder{Factor: 2}}
		if r := Run(w, genWhim(t, policy.Skip, policy.Block)(), cfg); r.ExposedPause < best {
			t.Fatalf("%s has %v, below the optimum %v", r.Policy, r.ExposedPause, best)
		}
	})
}
