package gc

import (
	"testing"
	"time"
)

// TestMeterLeavesOutTheSweep: cycles that take 44 ms apart and 84 ms at once
// after another are expected to take 44 ms, in whatever order they come; those
// that became slower or faster for good are believed.
func TestMeterLeavesOutTheSweep(t *testing.T) {
	const apart = time.Second
	learn := func(m *meter, d, gap time.Duration) float64 {
		m.learn(d, gap, 0)
		return m.cost(0).Seconds() * 1e3
	}
	m := newMeter()
	if got := learn(m, 44*ms, apart); got < 43.9 || got > 44.1 {
		t.Fatalf("after 44 ms: %.1f ms", got)
	}
	for range 10 {
		if got := learn(m, 84*ms, 0); got < 43.9 || got > 44.1 {
			t.Fatalf("after 84 ms at once after another: %.1f ms", got)
		}
	}
	for _, c := range []struct {
		d, gap    time.Duration
		low, high float64
	}{
		{200 * ms, 0, 99, 101},      // on busy cores, say: at least half was its own
		{200 * ms, apart, 199, 201}, // all was
		{150 * ms, 0, 149, 151},     // quicker than expected although it had to sweep
		{10 * ms, apart, 9, 11},
	} {
		var got float64
		for range 12 {
			got = learn(m, c.d, c.gap)
		}
		if got < c.low || got > c.high {
			t.Errorf("after cycles of %v, %v after the last: %.1f ms, want %g to %g", c.d, c.gap, got, c.low, c.high)
		}
	}
}
