package gc

import (
	"math"
	"runtime"
	"time"
)

// assist holds a caller that adds bytes beside the cycle r for its share of the rest
// of r: as long as the cycle takes for each time that the room up to the limit
// is filled. That is how Go's mark makes allocations assist it (runtime/mgcpacer.go).
func (o *ownership) assist(r *collection, bytes int64) {
	limit := o.limit.Load()
	if limit <= 0 || r.gate != o.gate {
		return
	}
	room := max(limit-r.live, limit/64, 1)
	share := time.Duration(min(float64(bytes)/float64(room), 1) * float64(r.expected))
	if owed := time.Duration(o.owed.Add(int64(share))); owed >= leastAssist {
		o.owed.Add(-int64(owed))
		o.gate.c.lend(r, o.live.Load()-r.live, room, owed)
	}
}

// lend holds a caller for at most want: while more than its share of room is used.
func (c *Collector) lend(r *collection, used, room int64, want time.Duration) {
	now := c.Now()
	due := r.begin + time.Duration(min(float64(used)/float64(room), math.MaxInt32)*float64(r.expected))
	c.holdBriefly(r, now, min(want, due-now), true)
}

// giveWay lets the cycle r have the caller's processor. On busy processors each of its
// steps otherwise waits until a goroutine has used up its slice of 10 ms: its start, the mark, the end of
// the mark, the releases; a cycle of 0.3 ms takes 30 to 60. The first caller to come by, which is who has asked for r, waits
// for it as the caps allow, unless a processor is free; a few more let others run once.
func (c *Collector) giveWay(r *collection) {
	n := int(r.passed.Add(1))
	if n > 2*runtime.GOMAXPROCS(0) {
		return
	}
	if n > 1 {
		runtime.Gosched()
	} else if !c.engine.spare() {
		c.holdBriefly(r, c.Now(), c.throttle.Assist, false)
	}
}

// holdBriefly holds a caller beside r for at most want from now on, and no longer than the caps allow.
// A caller that only yields its processor is not counted as paused: without the yield r would have taken another goroutine's time.
func (c *Collector) holdBriefly(r *collection, now, want time.Duration, exposes bool) {
	c.mu.Lock()
	want = c.throttle.hold(now, want)
	if exposes && want >= leastAssist {
		r.held = min(r.held, now)
	}
	c.mu.Unlock()
	if want < leastAssist {
		return
	}
	timer := time.NewTimer(want)
	defer timer.Stop()
	select {
	case <-r.done:
		c.mu.Lock()
		c.throttle.letGo(c.Now())
		c.mu.Unlock()
	case <-timer.C:
	}
	c.paused(r, now)
}
