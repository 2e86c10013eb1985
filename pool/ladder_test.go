package pool

import (
	"testing"
	"time"
)

// TestTheLadderBacksOff: the wait before a collection doubles with each in a row that freed too little, up to eight times the last one and to
// maxBackOff, and one that freed enough ends it.
func TestTheLadderBacksOff(t *testing.T) {
	var l ladder
	for i, step := range []struct {
		freed int64 // of 100 that are wanted
		took  time.Duration
		wait  time.Duration
	}{
		{99, 3, 3}, {0, 3, 6}, {50, 5, 20}, {0, 5, 40}, {0, 5, 40}, {100, 5, 0}, {0, 7, 7}, {0, time.Second, maxBackOff}, {101, 1, 0},
	} {
		if l.learn(Climb{Freed: step.freed, Duration: step.took}, 100); l.rest() != step.wait {
			t.Errorf("collection %d: a wait of %v, want %v", i, l.rest(), step.wait)
		}
	}
}
