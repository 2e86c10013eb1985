package sim

import (
	"math"
	"testing"
	"time"
)

// TestOracle: with a perfect forecast of two cycles, the rule of pacer is at
// most 1.1 of the best schedule known, on each recording at 1 ms and 10 ms, and
// better than with one cycle on all of them together.
func TestOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	mean := func(w *Workload, name string) float64 {
		sum, n := 0.0, 0.0
		for _, f := range []float64{1.5, 4} {
			for _, g := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
				cfg := Config{Limit: int64(f * float64(w.PeakReachable)), Cost: Fixed(g), Ladder: Ladder{Factor: 2}}
				c, err := ParseContender(name)
				if err != nil {
					t.Fatal(err)
				}
				r, err := c.Run(w, cfg)
				if err != nil {
					t.Fatal(err)
				}
				s, _, err := OptimumObjective(w, cfg)
				if err != nil {
					t.Fatal(err)
				}
				best := RunSchedule(w, "", s, cfg)
				sum += math.Log(float64(r.Objective()+100*time.Microsecond) / float64(best.Objective()+100*time.Microsecond))
				n++
			}
		}
		return math.Exp(sum / n)
	}
	for _, name := range []string{"mlp", "resnet", "gpt2", "vit", "gp", "gnn", "burst", "rcnn", "ppo", "serve", "spectral"} {
		w := sample(t, name)
		one, two := mean(w, "oracle:ahead=1"), mean(w, "oracle:ahead=2")
		if two > 1.1 || two > 1.02*one {
			t.Errorf("%s: %.3f of the best known with two cycles, %.3f with one", name, two, one)
		}
	}
}

func TestOracleText(t *testing.T) {
	for _, text := range []string{"oracle", "oracle:ahead=0", "oracle:ahead=3", "oracle:ahead=x"} {
		if _, err := ParseContender(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
