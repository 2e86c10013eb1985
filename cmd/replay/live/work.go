package live

import (
	"time"

	"github.com/eagergc/eagergc/sim"
)

// A stint is work of the host between two events that was so much to compute.
type stint struct {
	from, to time.Duration
	lost     time.Duration // by which it took longer than was recorded; negative: shorter
}

// Work is what the host computed, and what of it was lost: by which it took longer than
// was recorded. What is lost with no cycle beside it is the machine's.
type Work struct {
	Alone, LostAlone   time.Duration // with no cycle beside it
	Beside, LostBeside time.Duration // stints that had a cycle beside them, for a part at least
	Overlap            time.Duration // of those, while the cycle was under way
}

// slowdown is how much longer work takes beside a cycle: 0 = no longer, 1 = twice as
// long. What the machine would have lost anyway does not count.
func (w *Work) slowdown() float64 {
	lost := float64(w.LostBeside)
	if w.Alone > 0 {
		lost -= float64(w.LostAlone) / float64(w.Alone) * float64(w.Beside)
	}
	if left := float64(w.Overlap) - lost; lost > 0 && left > 0 {
		return lost / left
	}
	return 0
}

func (w *Work) add(x *Work) {
	w.Alone += x.Alone
	w.LostAlone += x.LostAlone
	w.Beside += x.Beside
	w.LostBeside += x.LostBeside
	w.Overlap += x.Overlap
}

// workOf says what all stints, in order, took beside cycles, also in order, and with none.
func workOf(stints []stint, cycles []sim.Collected, ahead time.Duration) (w Work) {
	var busy spans
	for _, c := range cycles {
		busy = append(busy, [2]int64{int64(c.Start - ahead), int64(c.Start + c.Duration - ahead)})
	}
	for _, s := range stints {
		overlap := busy.within(int64(s.from), int64(s.to))
		if overlap == 0 {
			w.Alone += s.to - s.from
			w.LostAlone += s.lost
			continue
		}
		w.Beside += s.to - s.from
		w.LostBeside += s.lost
		w.Overlap += overlap
	}
	return w
}
