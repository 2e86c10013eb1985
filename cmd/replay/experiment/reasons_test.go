package experiment_test

import (
	"testing"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// Reasons are the decisions that a cycle followed, and no other question matters to
// who asks why a cycle ran.
func TestKeepReasons(t *testing.T) {
	w := compile(t, []*trace.Trace{sample(t, "mlp")})[0]
	for _, text := range []string{"cudajl", "pacer", "never", "v8step"} {
		c, err := experiment.ParseContender(text)
		if err != nil {
			t.Fatal(err)
		}
		all, some := &sim.Log{KeepDecisions: true}, &sim.Log{KeepReasons: true}
		for _, l := range []*sim.Log{all, some} {
			if _, err := c.Run(w, sim.Config{Limit: w.PeakReachable * 5 / 4, Cost: sim.Fixed(1e7), Log: l}); err != nil {
				t.Fatal(err)
			}
		}
		before := func(l *sim.Log, c sim.Collected) (d sim.Decided) {
			for _, x := range l.Decisions {
				if x.Now <= c.Start {
					d = x
				}
			}
			return d
		}
		if len(some.Decisions) >= len(all.Decisions) || len(all.Cycles) == 0 {
			t.Errorf("%s: %d of %d decisions are kept, of %d cycles", text, len(some.Decisions), len(all.Decisions), len(all.Cycles))
		}
		for _, c := range all.Cycles {
			if a, b := before(all, c), before(some, c); a != b {
				t.Fatalf("%s: before the cycle at %v comes %+v, want %+v", text, c.Start, b, a)
			}
		}
		asked := func(l *sim.Log) (n int) {
			for _, d := range l.Decisions {
				if d.Action != policy.Skip {
					n++
				}
			}
			return n
		}
		if a, b := asked(all), asked(some); a != b {
			t.Errorf("%s: %d decisions to collect are kept of %d", text, b, a)
		}
	}
}
