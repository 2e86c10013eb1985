package sim

import (
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
)

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
