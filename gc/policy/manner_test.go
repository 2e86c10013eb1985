package policy

import (
	"testing"
	"time"
)

// TestMannerFindsTheCheaper: early and late starts are tried in turn, and the one whose bytes take less time is used
// nearly always, also after the program has changed. Where cycles do not slow the program, all starts are early.
func TestMannerFindsTheCheaper(t *testing.T) {
	now, m := mannerMark{}, manner{}
	run := func(cycles int, slow float64, early, late int64) (share float64) {
		n := 0
		for range cycles {
			cost := early
			if m.choose(slow, now) {
				n++
				cost = late
			}
			now.total += 1000
			now.at += time.Duration(cost)
			m.taken++
		}
		return float64(n) / float64(cycles)
	}
	if got := run(36, 3, 1000, 1100); got > 0.12 {
		t.Errorf("late starts in the first 36, where they cost a tenth more: %g", got)
	}
	m = manner{}
	if got := run(100, 0.1, 2, 1); got > 0 {
		t.Errorf("late starts in a program that cycles do not slow: %g", got)
	}
	run(100, 3, 2000, 1000)
	if got := run(2000, 3, 2000, 1000); got < 0.9 {
		t.Errorf("late starts where they cost half: %g", got)
	}
	run(400, 3, 1000, 2000)
	if got := run(2000, 3, 1000, 2000); got > 0.1 {
		t.Errorf("late starts where they cost twice as much: %g", got)
	}
}
