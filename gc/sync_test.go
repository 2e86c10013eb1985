package gc

import (
	"testing"
	"time"
)

// A wait is expected to take what waits at its place took; a quarter of each is believed.
func TestWaitsAreExpectedByPlace(t *testing.T) {
	var p, other WaitPlace
	for _, step := range []struct{ took, want time.Duration }{{8, 8}, {16, 10}, {2, 8}, {8, 8}} {
		if p.learn(step.took * ms); p.Expected() != step.want*ms {
			t.Errorf("after a wait of %d ms: %v, want %d ms", step.took, p.Expected(), step.want)
		}
	}
	if other.Expected() != 0 {
		t.Errorf("%v is expected where nobody has waited", other.Expected())
	}
}

// TestOneWaitInFourIsMeasured, by the clock, and the first one.
func TestOneWaitInFourIsMeasured(t *testing.T) {
	var p WaitPlace
	if !p.due(64) {
		t.Error("the first wait is not measured")
	}
	for _, expected := range []int64{1, 1000} {
		p.expected.Store(expected)
		measured := 0
		for now := range time.Duration(4096) {
			if p.due(now) {
				measured++
			}
		}
		if measured != 1024 || !p.due(63) || p.due(64) || p.due(255) || !p.due(256) {
			t.Errorf("%d of 4096 are measured", measured)
		}
	}
}
