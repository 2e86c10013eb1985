package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// BenchmarkRun gives events replayed per second: by decision, and event by event.
func BenchmarkRun(b *testing.B) {
	w := sample(b, "gpt2")
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
	w := sample(b, "gpt2")
	cfg := Config{Limit: w.PeakReachable * 3 / 2, Cost: Fixed(10 * time.Millisecond), Ladder: Ladder{Factor: 2}}
	b.Run("kind=blocking", func(b *testing.B) {
		for b.Loop() {
			if _, err := OptimumBlocking(w, cfg.Limit, cfg.Cost); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("kind=overlap", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := OptimumOverlap(w, cfg); err != nil {
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

// BenchmarkPacer gives what the pacer costs a program: the time that a run takes more with it than without, by
// point, which is an allocation or a sync, and by decision, which is a point at which it does not sleep. Points are
// those of all recordings.
func BenchmarkPacer(b *testing.B) {
	var all []*Workload
	points := 0
	for _, name := range samples.All() {
		w := sample(b, name)
		all = append(all, w)
		points += len(w.points)
	}
	replay := func(w *Workload, p policy.Policy) time.Duration {
		begin := time.Now()
		Run(w, p, Config{Limit: w.PeakReachable * 3 / 2, Cost: Fixed(time.Millisecond), Ladder: Ladder{Factor: 2}})
		return time.Since(begin)
	}
	asked := 0
	for _, w := range all {
		count := &counting{Policy: policy.MustParse("pacer").New()}
		replay(w, count)
		asked += count.asked
	}
	with, without := make([]time.Duration, len(all)), make([]time.Duration, len(all)) // the least, since others may be at work
	for i := range all {
		with[i], without[i] = time.Hour, time.Hour
	}
	for b.Loop() {
		for i, w := range all {
			with[i] = min(with[i], replay(w, policy.MustParse("pacer").New()))
			without[i] = min(without[i], replay(w, policy.Spec{}.New()))
		}
	}
	sum := time.Duration(0)
	for i := range all {
		sum += with[i] - without[i]
	}
	b.ReportMetric(float64(sum)/float64(points), "ns/point")
	b.ReportMetric(float64(sum)/float64(asked), "ns/decision")
	b.ReportMetric(0, "ns/op")
}

// A counting policy counts how often it is asked.
type counting struct {
	policy.Policy
	asked int
}

func (c *counting) Decide(p policy.Point) policy.Decision {
	c.asked++
	return c.Policy.Decide(p)
}
