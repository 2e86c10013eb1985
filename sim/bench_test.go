package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// BenchmarkRun gives events replayed per second: by decision, and event by event.
func BenchmarkRun(b *testing.B) {
	w := sawtooth(b, 50_000)
	engines := []struct {
		name string
		run  func(*Workload, policy.Policy, Config) Result
	}{{"event", runEvents}, {"decision", Run}}
	for _, text := range []string{"never", "cudajl", "every-sync", "sqrt"} {
		spec := policy.MustParse(text)
		for _, e := range engines {
			b.Run(fmt.Sprintf("policy=%s/engine=%s", text, e.name), func(b *testing.B) {
				cfg := Config{Limit: w.PeakReachable * 3 / 2, Cost: Fixed(10 * time.Millisecond), Ladder: Ladder{Factor: 2}}
				b.ReportAllocs()
				for b.Loop() {
					e.run(w, spec.New(), cfg)
				}
				b.ReportMetric(float64(b.N)*float64(len(w.ops))/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

func BenchmarkOptimum(b *testing.B) {
	w := sawtooth(b, 50_000)
	cfg := Config{Limit: w.PeakReachable * 3 / 2, Cost: Fixed(10 * time.Millisecond), Ladder: Ladder{Factor: 2}}
	b.Run("kind=blocking", func(b *testing.B) {
		for b.Loop() {
			if _, err := optimumBlocking(w, cfg.Limit, cfg.Cost); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("kind=overlap", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := optimumOverlap(w, cfg, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestRunAllocatesNothingPerEvent: a run allocates its state and text, however long the trace.
func TestRunAllocatesNothingPerEvent(t *testing.T) {
	short, long := sawtooth(t, 100), sawtooth(t, 10_000)
	spec := policy.MustParse("cudajl")
	for _, run := range []func(*Workload, policy.Policy, Config) Result{Run, runEvents} {
		cfg := Config{Limit: 1000, Cost: Fixed(200), Ladder: Ladder{Factor: 2}}
		a := testing.AllocsPerRun(10, func() { run(short, spec.New(), cfg) })
		b := testing.AllocsPerRun(10, func() { run(long, spec.New(), cfg) })
		if a != b {
			t.Errorf("%v allocations for 100 objects, %v for 10,000", a, b)
		}
	}
}
