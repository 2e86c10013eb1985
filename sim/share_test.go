package sim_test

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/samples"
	"github.com/eagergc/eagergc/trace/synthetic"
)

// TestPacerKeepsToAShareOfTime: within half a point, on recordings, Go programs and programs that nobody
// has seen, cycles take no more than their share. Where a limit alone asks for more, they
// take that. Where they are so long that there is something for each to free, they take no less
// in what was recorded; a generated program may be silent for longer than what is made up for.
func TestPacerKeepsToAShareOfTime(t *testing.T) {
	traces := recorded(t)
	for _, name := range samples.Programs() {
		tr, err := samples.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, tr)
	}
	if testing.Short() {
		traces = traces[:6]
	}
	found := len(traces)
	shared := func(w *sim.Workload, text string, limit float64, g time.Duration) float64 {
		r := sim.Run(w, gc.MustParse(text).New(), sim.Config{Limit: int64(limit * float64(w.PeakReachable)), Cost: sim.Fixed(g), Ladder: sim.Ladder{Factor: 2}})
		return r.GCBusy.Seconds() / r.Elapsed.Seconds()
	}
	for i, w := range compile(t, append(traces, programs(t, 6, synthetic.Shapes()...)...)) {
		for _, g := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
			least := g.Seconds() / w.Span.Seconds() // of one cycle
			free, limited := shared(w, "pacer:cpu=2%", 0, g), shared(w, "pacer:cpu=2%", 2, g)
			if free > 0.025+2*least || i < found && g >= time.Millisecond && free < 0.015-least {
				t.Errorf("%s, cycles of %v, no limit: %.2f %%, want 2", w.Name, g, 100*free)
			}
			if asked := shared(w, "pacer", 2, g); limited > max(0.02, asked)+0.005+2*least {
				t.Errorf("%s, cycles of %v: %.2f %%, want 2, or the %.2f that the limit asks for", w.Name, g, 100*limited, 100*asked)
			}
		}
	}
}
