package live

import (
	"runtime"
	"time"
)

// A clock paces a run. Time 0 is its start.
type clock struct {
	start time.Time
	speed float64 // 1 = as recorded; 0 = as fast as possible
	rate  float64 // turns of compute in a ns on an idle machine; 0 = work spins for its time
}

func (k *clock) now() time.Duration { return time.Since(k.start) }

// scaled returns how long a recorded duration of d ns takes in this run.
func (k *clock) scaled(d int64) time.Duration {
	if k.speed == 0 {
		return 0
	}
	return time.Duration(float64(d) / k.speed)
}

// coarse is longer than most sleeps are late.
const coarse = 1500 * time.Microsecond

// idleGap is the longest time between two events that counts as work of the host. In a longer
// one the host does nothing for the device.
const idleGap = 10 * coarse

// work lets the host work until time t. It spins, or computes as many turns as fit in that time
// on an idle machine. In a long gap it sleeps.
func (k *clock) work(t time.Duration) {
	if d := t - k.now(); d > idleGap {
		time.Sleep(d - coarse)
	} else if d > 0 && k.rate > 0 {
		runtime.KeepAlive(compute(int(k.rate * float64(d))))
		return
	}
	for k.now() < t {
	}
}

// compute does n turns of work that needs no memory.
func compute(n int) (x uint64) {
	x = 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// computeRate returns the turns in a ns: the median of short tries.
func computeRate() float64 {
	const turns = 1 << 16
	var tries []time.Duration
	for range 201 {
		begin := time.Now()
		runtime.KeepAlive(compute(turns))
		tries = append(tries, time.Since(begin))
	}
	return turns / float64(median(tries))
}

// wait yields the processor until time t.
func (k *clock) wait(t time.Duration) {
	if d := t - k.now(); d > coarse {
		time.Sleep(d - coarse)
	}
	for k.now() < t {
		runtime.Gosched()
	}
}
