package gc

import (
	"math"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

func TestPausesAreCountedByLength(t *testing.T) {
	var s Stats
	for i := range pauses - 1 {
		s.pause(PauseBound(i))
	}
	s.pause(time.Hour)
	s.pause(0)
	for i, n := range s.Pauses {
		if want := map[bool]uint64{true: 2, false: 1}[i == 0]; n != want {
			t.Errorf("bucket %d has %d pauses, want %d", i, n, want)
		}
	}
	if PauseBound(pauses-1) != math.MaxInt64 || PauseBound(3) != time.Millisecond {
		t.Error(PauseBound(pauses-1), PauseBound(3))
	}
}

func TestBusyLeavesOutTheRuntimesOwnCycles(t *testing.T) {
	var s Stats
	for trigger := range triggers {
		c := policy.Cycle{Trigger: trigger, Duration: 1 << trigger}
		s.cycle(c, workOf(c, 1, 0), 0)
	}
	if want := time.Duration(1<<triggers - 1 - 1<<policy.TriggerNatural); s.Busy != want {
		t.Errorf("busy %d, want %d", s.Busy, want)
	}
}
