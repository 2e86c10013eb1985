package governor

import (
	"cmp"
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A Cause says why a cycle begins, and for which memory.
type Cause struct {
	Trigger policy.Trigger
	Action  policy.Action
	Reason  string  // the policy's; empty if it was not asked
	Memory  *Memory // nil if the governor has none
}

// A Run is one cycle, from Began to Settled.
type Run struct {
	Cause
	Start time.Duration

	// Measurements of the shell, for Settled.
	Duration  time.Duration // until its yield was given back, without waits for finalizers of other code
	Exposed   time.Duration // time for which a caller was held beyond its own wait
	Processor time.Duration // processor time, summed over all processors; 0 = unknown
	Swept     time.Duration // the part of Duration before its own mark began
	Tracked   int           // objects tracked now
	Objects   int           // objects given back

	live, room int64 // of the memory when the cycle began, and from there to its limit, in bytes
	expected   time.Duration
}

// Began reports that a cycle begins.
func (g *Governor) Began(at time.Duration, why Cause) Run {
	g.progress.began = at
	g.Running = true
	r := Run{Cause: why, Start: at, expected: g.Cost}
	if m := why.Memory; m != nil {
		r.live, r.room = m.Live, max(m.Limit-m.Live, m.Limit/64, 1)
	}
	return r
}

// Settled reports that a cycle has settled: its yield has been given back. The shell first updates
// each memory: its reading, and Freed, the bytes that the cycle gave back. Settled learns from the
// cycle and tells the policy.
//
// A cycle that the runtime began by itself has the trigger natural. It did not pass Began, and was
// not timed, so its length is a guess.
func (g *Governor) Settled(at time.Duration, r *Run) (c policy.Cycle) {
	if r.Trigger == policy.TriggerNatural {
		c = policy.Cycle{Start: max(0, at-g.Cost), Duration: min(at, g.Cost), Work: g.Work, Trigger: r.Trigger, Action: r.Action}
		g.report(at, &c, r)
		return c
	}
	g.progress.ended(at, r.Exposed)
	g.Running = false
	c = policy.Cycle{
		Start: r.Start, Duration: r.Duration, Exposed: r.Exposed, Trigger: r.Trigger, Action: r.Action,
		Work: r.Processor / time.Duration(g.Processors),
	}
	if g.learned != nil {
		g.learned.Learn(policy.Measured{
			Length: r.Duration - r.Swept, Work: r.Processor, Processors: g.Processors,
			Scan: g.scan, Tracked: r.Tracked + r.Objects,
		})
		g.See(g.scan, r.Tracked)
	}
	g.spend(r.Start, cmp.Or(r.Processor, r.Duration*time.Duration(g.Processors)))
	g.report(at, &c, r)
	return c
}

// report completes c, which is the cycle r. It takes the current readings as the state after it.
func (g *Governor) report(at time.Duration, c *policy.Cycle, r *Run) {
	m, kept := r.Memory, r.live
	if m != nil {
		kept = max(0, r.live-m.Freed)
	}
	for _, x := range g.memories {
		x.rebase()
		if m != nil && x.isOneWith(m) {
			c.Freed += x.Freed
			c.LiveAfter += x.kept
		}
		x.Freed = 0
	}
	if m != nil {
		s, _ := g.shown(m)
		c.Limit, c.Wanted, m.wanted = s.Limit, m.wanted, 0
	}
	if g.closed {
		return
	}
	g.rests(c, m, at, kept)
	g.wakeAll(0)
	g.policy.Observe(*c)
}

// Share returns the wait that a caller owes for adding bytes beside r. A caller that fills a part
// of the room up to the limit owes the same part of the cycle's expected length. Go's mark makes
// allocations assist it in this way (runtime/mgcpacer.go). Share is safe for concurrent use.
func (r *Run) Share(bytes int64) time.Duration {
	if r.room == 0 {
		return 0
	}
	return time.Duration(min(float64(bytes)/float64(r.room), 1) * float64(r.expected))
}

// Assist returns how long a caller that owes a wait is held beside r. It is held while a larger
// part of the room is used than of the cycle's expected length. Assist returns 0 if the wait is
// not worth a timer.
func (g *Governor) Assist(at time.Duration, r *Run, owed time.Duration) time.Duration {
	used := float64(r.Memory.Live-r.live) / float64(r.room)
	due := r.Start + time.Duration(min(used, math.MaxInt32)*float64(r.expected))
	return g.hold(at, min(owed, due-at))
}

// Yielders returns how many callers that meet a cycle let other goroutines run once. On busy
// processors each step of a cycle waits until a goroutine has used up its slice. A cycle of 0.3 ms
// then takes 30 to 60 ms. The first caller waits as GiveWay says, unless a processor is free.
func Yielders(processors int) int { return 2 * processors }

// GiveWay returns how long the first caller that meets a cycle is held. The shell calls it only if
// no processor is free.
func (g *Governor) GiveWay(at time.Duration) time.Duration { return g.hold(at, g.caps.Assist) }
