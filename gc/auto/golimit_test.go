package auto

import (
	"math"
	"testing"
	"time"
)

// The limit of Go is what memory outside leaves. It is set rarely, and goes where Go needs all of it, or the container's limit goes.
func TestGoLimitFollows(t *testing.T) {
	s := newStage()
	l := takeGoLimit(s.setGoLimit)
	now := time.Now()
	for i, step := range []struct {
		after      time.Duration
		left, need int64
		want       int64
	}{
		{0, math.MaxInt64, 40, unlimited},
		{0, 900, 40, 900},
		{1, 950, 40, 900}, // a small change
		{1, 1200, 40, 900},
		{9, 1200, 40, 1200}, // up, but not soon again
		{1, 1000, 40, 1200},
		{1, 880, 40, 880}, // down at once by much
		{1, 880, 790, 880},
		{1, 880, 801, unlimited}, // Go needs it: no limit rather than cycles without end
		{60, 880, 710, unlimited},
		{60, 880, 700, 880},
		{1, math.MaxInt64, 40, unlimited}, // the container has none any more
	} {
		now = now.Add(step.after * time.Second)
		if l.steer(step.left, step.need, now); s.present != step.want {
			t.Errorf("step %d: limit %d, want %d", i, s.present, step.want)
		}
	}
	if l.giveBack(); s.present != math.MaxInt64 {
		t.Errorf("left %d behind", s.present)
	}
}

func TestGoLimitOfTheProgramStays(t *testing.T) {
	for name, first := range map[string]int64{"before": 123, "after": math.MaxInt64} {
		s := newStage()
		s.present = first
		l := takeGoLimit(s.setGoLimit)
		for _, set := range []int64{123, math.MaxInt64, 77} {
			s.present = set
			if l.steer(1000, 10, time.Now()); s.present != set {
				t.Errorf("%s: %d became %d", name, set, s.present)
			}
			if l.giveBack(); s.present != set {
				t.Errorf("%s: the end made %d of %d", name, s.present, set)
			}
		}
	}
	s := newStage()
	w := begun(t, s)
	s.container.Store(1000 * mib)
	s.anonymous.Store(100 * mib)
	for range 100 { // a saw tooth
		s.anonymous.Store((100 + 200*(s.anonymous.Load()/mib/100%2)) * mib)
		w.review(time.Now())
	}
	if n := len(s.given); n > 3 {
		t.Errorf("set %d times: %d", n, s.given)
	}
}

func TestGoLimitOfTheEnvironmentStays(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "off")
	s := newStage()
	if takeGoLimit(s.setGoLimit).steer(1000, 10, time.Now()); s.present != math.MaxInt64 {
		t.Errorf("changed to %d", s.present)
	}
}
