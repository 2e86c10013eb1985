package live

import (
	"runtime"
	"time"
)

// A clock paces a run. Time 0 is its start.
type clock struct {
	start time.Time
	speed float64 // 1 = as recorded; 0 = as fast as it goes
	rate  float64 // turns of compute in a ns, with nothing beside it; 0 = work is to keep the processor busy until its time
}

func (k *clock) now() time.Duration { return time.Since(k.start) }

// scaled is how long what was recorded to take d takes here.
func (k *clock) scaled(d int64) time.Duration {
	if k.speed == 0 {
		return 0
	}
	return time.Duration(float64(d) / k.speed)
}

// coarse is longer than the time by which most sleeps are late.
const coarse = 1500 * time.Microsecond

// idleGap is the longest time between two events that counts as work of the host.
// In a longer one it does nothing for the device.
const idleGap = 10 * coarse

// work lets the host work until time t: it keeps the processor busy, computes as much as
// it would by then with nothing beside it, or sleeps.
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

// compute is work of n turns that needs no memory.
//
//go:noinline
func compute(n int) (x uint64) {
	x = 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// computeRate measures the turns in a ns: the middle of some short tries.
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

// wait leaves the processor to others until time t.
func (k *clock) wait(t time.Duration) {
	if d := t - k.now(); d > coarse {
		time.Sleep(d - coarse)
	}
	for k.now() < t {
		runtime.Gosched()
	}
}
