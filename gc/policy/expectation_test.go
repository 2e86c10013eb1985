package policy

import (
	"testing"
	"time"
)

// TestCostFollowsWhatCyclesTake: the first cycle is believed, and each later
// one half.
func TestCostFollowsWhatCyclesTake(t *testing.T) {
	m := costModel{base: 1}
	for i, c := range []struct{ took, want time.Duration }{{44, 44}, {84, 64}, {64, 64}, {0, 32}} {
		m.learn(c.took*ms, 0, 0)
		if got := m.cost(0, 0) - c.want*ms; got < -ms/10 || got > ms/10 {
			t.Errorf("cycle %d of %v: %v from %v", i, c.took*ms, got, c.want*ms)
		}
	}
}

// A cycle beside which the system had given the processors to others does not count.
func TestWorkIsTheMedian(t *testing.T) {
	m := workModel{costModel: costModel{base: 1}}
	for i, c := range []struct{ took, want time.Duration }{{40, 40}, {900, 40}, {50, 50}, {900, 50}, {60, 60}, {60, 60}, {900, 60}} {
		m.learn(c.took*ms, 0, 0)
		if got := m.cost(0, 0) - c.want*ms; got < -ms/10 || got > ms/10 {
			t.Errorf("cycle %d of %v: %v from %v", i, c.took*ms, got, c.want*ms)
		}
	}
}
