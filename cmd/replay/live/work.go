package live

import (
	"time"

	"github.com/eagergc/eagergc/sim"
)

// A stint is host work of a fixed number of turns between two events.
type stint struct {
	from, to time.Duration
	lost     time.Duration // beyond the recorded time; negative: it took less
}

// Work is the time that the host computed, and the time that it lost: the part beyond the
// recorded time. The machine, not the collector, causes the loss without a cycle.
type Work struct {
	Alone, LostAlone   time.Duration // with no cycle beside it
	Beside, LostBeside time.Duration // stints with a cycle beside at least a part of them
	Overlap            time.Duration // the part of Beside in which the cycle ran
}

// Slowdown returns how much longer work takes beside a cycle: 0 = no longer, 1 = twice as long. It
// subtracts the loss without a cycle, because the machine causes that.
func (w *Work) Slowdown() float64 {
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

// workOf sums up stints beside cycles and without cycles; both are in order. The clock of the
// cycles leads by ahead.
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
