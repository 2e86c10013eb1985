package auto

import (
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// What others in the container hold is no part of the limit, and a full one has a price.
func TestNeighbours(t *testing.T) {
	s := newStage()
	s.container.Store(1000 * mib)
	s.anonymous.Store(300 * mib)
	s.golang.Store(50 * mib)
	w := begun(t, s)
	for _, step := range []struct{ others, limit, urgency int64 }{
		{0, 900, 0}, {30, 870, 0}, {400, 500, 0}, {460, 440, 1}, {380, 520, 1}, {340, 560, 0}, {620, 280, 2}, {550, 350, 2}, {480, 420, 1}, {0, 900, 0},
	} {
		s.others = step.others * mib
		w.review(time.Now())
		if got := w.gauge.Sample().Limit; got != step.limit*mib || int64(w.urgency) != step.urgency {
			t.Errorf("others hold %d MiB: limit %d MiB and urgency %d, want %d and %d", step.others, got/mib, w.urgency, step.limit, step.urgency)
		}
		if w.collector.Policy() != policy.MustParse(urgencies[step.urgency].policy).New().String() {
			t.Errorf("policy %s", w.collector.Policy())
		}
	}
	s.others = 2000 * mib // more than there is
	if w.review(time.Now()); w.gauge.Sample().Limit < 1 {
		t.Errorf("limit %d", w.gauge.Sample().Limit)
	}
}
