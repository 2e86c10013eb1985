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
