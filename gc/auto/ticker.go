package auto

import (
	"sync/atomic"
	"time"
)

// A rival is the ticker that keeps memory below the same peak: what grows most in a second fits between two of its cycles.
type rival struct {
	grown int64 // of the gauge, at the last review
	at    time.Duration
	rate  atomic.Int64 // the most that it grew by in a second
	low   int64        // of the gauge
	tooth atomic.Int64 // how much the gauge has been above its low
}

// see is told at each review what the gauge reads, and by how much it has grown since the start.
func (r *rival) see(level, grown int64, now time.Duration) {
	if r.at == 0 {
		r.low = level
	} else if d := (now - r.at).Seconds(); d > 0.1 {
		r.rate.Store(max(r.rate.Load(), int64(float64(grown-r.grown)/d)))
	}
	r.grown, r.at, r.low = grown, now, min(r.low, level)
	r.tooth.Store(max(r.tooth.Load(), level-r.low))
}

// cycles are those that it would have run by now.
func (r *rival) cycles(now time.Duration) uint64 {
	tooth := r.tooth.Load()
	if tooth == 0 {
		return 0
	}
	return uint64(now.Seconds() * float64(r.rate.Load()) / float64(tooth))
}
