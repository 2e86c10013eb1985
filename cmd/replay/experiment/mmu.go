package experiment

import (
	"time"

	"github.com/eagergc/eagergc/sim"
)

// MMU returns the minimum mutator utilization for each window: the least share of any interval
// of that length, within the run, in which the program was not held (Cheng and Blelloch, PLDI
// 2001). A window longer than the run counts as the run.
func MMU(l *sim.Log, elapsed time.Duration, windows []time.Duration) []float64 {
	mmu := make([]float64, len(windows))
	for k, w := range windows {
		w = min(w, elapsed)
		if w <= 0 {
			mmu[k] = 1
			continue
		}
		// The worst window starts with a pause or ends with one.
		var most, held time.Duration
		byEnd, byStart := heldUntil{pauses: l.Pauses}, heldUntil{pauses: l.Pauses}
		for _, p := range l.Pauses {
			if p.At+w <= elapsed {
				most = max(most, byEnd.of(p.At+w)-held)
			}
			held += p.Length
			if end := p.At + p.Length; end >= w {
				most = max(most, held-byStart.of(end-w))
			}
		}
		before := func(t time.Duration) time.Duration { return (&heldUntil{pauses: l.Pauses}).of(t) }
		most = max(most, before(w), before(elapsed)-before(elapsed-w))
		mmu[k] = 1 - float64(most)/float64(w)
	}
	return mmu
}

// A heldUntil returns how long the program was held before a time. The times of its calls must
// not decrease.
type heldUntil struct {
	pauses []sim.Pause   // that start later, and the last one that does not
	held   time.Duration // by those before
}

func (h *heldUntil) of(t time.Duration) time.Duration {
	for len(h.pauses) > 1 && h.pauses[1].At < t {
		h.held += h.pauses[0].Length
		h.pauses = h.pauses[1:]
	}
	if len(h.pauses) == 0 || h.pauses[0].At >= t {
		return h.held
	}
	return h.held + min(h.pauses[0].Length, t-h.pauses[0].At)
}
