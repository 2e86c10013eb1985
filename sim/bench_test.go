package sim

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// BenchmarkRun gives events replayed per second.
func BenchmarkRun(b *testing.B) {
	w := sawtooth(b, 50_000)
	cfg := Config{Limit: w.PeakReachable * 3 / 2, Cost: Fixed(10 * time.Millisecond), Ladder: Ladder{Factor: 2}}
	for _, text := range []string{"never", "cudajl", "every-sync", "sqrt"} {
		spec := policy.MustParse(text)
		b.Run("policy="+text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Run(w, spec.New(), cfg)
			}
			b.ReportMetric(float64(b.N)*float64(len(w.ops))/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// TestRunAllocatesNothingPerEvent: a run allocates its state and text, however long the trace.
func TestRunAllocatesNothingPerEvent(t *testing.T) {
	short, long := sawtooth(t, 100), sawtooth(t, 10_000)
	spec, cfg := policy.MustParse("cudajl"), Config{Limit: 1000, Cost: Fixed(200), Ladder: Ladder{Factor: 2}}
	a := testing.AllocsPerRun(10, func() { Run(short, spec.New(), cfg) })
	b := testing.AllocsPerRun(10, func() { Run(long, spec.New(), cfg) })
	if a != b {
		t.Errorf("%v allocations for 100 objects, %v for 10,000", a, b)
	}
}
