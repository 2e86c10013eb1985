package gc

import (
	"runtime/metrics"
	"time"
)

// A backoff is how a gauge backs off. Its memory has to prove that cycles bring it back: as long as
// too few of the late ones did, the gauge has to grow by an eighth, and by as much as Go
// lets its own heap grow, before the next one. After one that brought nearly nothing time has
// to pass, too, twice as long with each in a row. A rise to more than twice as much ends that
// wait. One that came so early that hardly anything could be found proves nothing; time has to pass, but growth ends that. Cycles of the runtime's own cost nothing and prolong nothing.
//
// (The OpenTelemetry collector's memory limiter has the share and the doubling, LF Edge
// EVE's watcher the growth: both came to it after cycles back to back. That a heap
// grows by its own size between two cycles is GOGC=100.)
type backoff struct {
	worth  float64       // share of cycles that brought something back: half of each new one is believed
	length time.Duration // of the wait after the last one; 0 = cycles are worth it
	until  time.Duration // on the collector's clock
	level  int64         // lowest that the gauge has had since
}

const (
	futileShare = 0.05     // share of a gauge that a cycle is to bring back
	leastYield  = 2 << 20  // bytes that are worth a cycle if they are most of the growth before it
	provedShare = 0.25     // of the late cycles, that are to bring something back
	restShare   = 0.01     // of the processor time, for cycles that bring nothing
	keptShare   = 0.05     // of it, for a cycle that freed nothing although recent ones did
	restLeast   = 16 << 20 // bytes that are worth a wait
	firstRest   = 10 * time.Millisecond
	lastRest    = 2 * time.Minute
)

// see is told of each level.
func (r *backoff) see(level int64) { r.level = min(r.level, level) }

// on reports whether the gauge asks for no cycle. Heap is [goHeap].
func (r *backoff) on(level, heap int64, now time.Duration) bool {
	grown := level - r.level
	if r.proved() {
		return now < r.until && grown < max(r.level/8, heap)
	}
	if grown > r.level+heap+restLeast {
		return false
	}
	return now < r.until || grown < max(r.level/8, heap)
}

// proved reports whether cycles bring memory back: one of the last two did, or of the last three if many did before.
func (r *backoff) proved() bool { return r.worth >= provedShare }

// An outcome is what a cycle did to a gauge.
type outcome struct {
	asked  bool          // it was not the runtime's own
	began  time.Duration // its mark
	lasted time.Duration // since the mark before began
	marks  int64         // of the collector's, up to its own
	high   int64         // bytes of the gauge when the mark had ended
	grown  int64         // bytes that the gauge had grown by since the cycle before
	risen  int64         // the sum of its rises since the mark before began
	freed  int64         // bytes that the gauge fell by, beyond what the program frees by itself
	ran    int64         // finalizers and cleanups that have run, but for our own
	work   time.Duration // processor time of such a cycle, for each processor
}

func (r *backoff) learn(o outcome, now time.Duration) {
	brought := float64(o.freed) >= futileShare*float64(o.high) || o.freed >= leastYield && 2*o.freed >= o.grown
	kept := o.ran > 0 // by an allocator, or it was other memory
	pause := func(share float64) time.Duration { return time.Duration(float64(o.work) / share) }
	if !o.asked && !(brought && kept) {
		return
	}
	tells := brought || kept || float64(o.risen) >= max(leastYield, futileShare*float64(o.high)) // or there was hardly anything that it could find
	if tells {
		r.worth /= 2
	}
	if brought || kept {
		r.worth += 0.5
	}
	switch {
	case brought:
		r.length, r.until = 0, 0
	case tells && r.proved():
		r.length, r.until = 0, o.began+pause(keptShare)
	default:
		r.length = max(pause(restShare), min(max(2*r.length, firstRest), lastRest))
		r.until = now + r.length
	}
	r.level = max(0, o.high-o.freed)
}

// goHeap returns the bytes of the Go heap that the last cycle has kept, and at
// least the 4 MiB that Go takes its heap for. It takes 0.1 us.
func goHeap() int64 {
	s := [...]metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s[:])
	return max(4<<20, int64(s[0].Value.Uint64()))
}
