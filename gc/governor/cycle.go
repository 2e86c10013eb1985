package governor

import (
	"cmp"
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// An active is the cycle under way.
type active struct {
	trigger  policy.Trigger
	action   policy.Action
	memory   *Memory // the cycle runs for this memory; nil if the governor has none
	start    time.Duration
	live     int64 // of the memory when the cycle began, in bytes
	expected time.Duration
}

// Took holds the shell's measurements of a cycle.
type Took struct {
	Duration  time.Duration // until its yield was given back, without waits for finalizers of other code
	Exposed   time.Duration // time for which a caller was held beyond its own wait
	Processor time.Duration // processor time, summed over all processors; 0 = unknown
	Swept     time.Duration // the part of Duration before its own mark began
	Tracked   int           // objects tracked now
	Objects   int           // objects given back
}

// Began reports that a cycle for m begins. It returns the share of the cycle that callers of m pay
// by assists. m may be nil.
func (g *Governor) Began(at time.Duration, trigger policy.Trigger, action policy.Action, m *Memory) Assist {
	g.progress.note(g.allocated(at), g.Cost)
	g.Running = true
	g.active = active{trigger: trigger, action: action, memory: m, start: at, expected: g.Cost}
	if m == nil {
		return Assist{}
	}
	g.active.live = m.Live
	return Assist{Memory: m, live: m.Live, room: max(m.Limit-m.Live, m.Limit/64, 1), expected: g.Cost}
}

// Start returns when the cycle under way began.
func (g *Governor) Start() time.Duration { return g.active.start }

// Settled reports that the cycle under way has settled: its yield has been given back. The shell
// first updates each memory: its reading, and Freed, the bytes that the cycle gave back. Settled
// learns from the cycle and tells the policy. Order.Again is set if the policy should be asked
// again soon, even without an allocation.
func (g *Governor) Settled(at time.Duration, took *Took) (c policy.Cycle, o Order) {
	a := g.active
	g.progress.ended(g.allocated(at), took.Exposed)
	g.Running, g.active = false, active{}
	c = policy.Cycle{
		Start: a.start, Duration: took.Duration, Exposed: took.Exposed, Trigger: a.trigger, Action: a.action,
		Work: took.Processor / time.Duration(g.Processors),
	}
	if g.learned != nil {
		g.learned.Learn(policy.Measured{
			Length: took.Duration - took.Swept, Work: took.Processor, Processors: g.Processors,
			Scan: g.scan, Tracked: took.Tracked + took.Objects,
		})
		g.See(g.scan, took.Tracked)
	}
	g.spend(a.start, cmp.Or(took.Processor, took.Duration*time.Duration(g.Processors)))
	g.report(at, &c, a.memory, a.live)
	g.idle.later = later{}
	if m := a.memory; c.Freed > 0 && m != nil && m.Soft && g.IdleEvery > 0 {
		g.idle.later = later{memory: m, wait: slice}
		o.Again = slice
	}
	return c, o
}

// Natural reports that a cycle which the runtime began by itself has settled. m is the memory
// under most pressure. The length of the cycle is a guess, because it was not timed.
func (g *Governor) Natural(at time.Duration, m *Memory) policy.Cycle {
	c := policy.Cycle{Duration: min(at, g.Cost), Work: g.Work, Trigger: policy.TriggerNatural, Action: policy.Overlap}
	c.Start = at - c.Duration
	g.report(at, &c, m, 0)
	return c
}

// report completes c, a cycle for m, which had live bytes when the cycle began. It takes the
// current readings as the state after the cycle.
func (g *Governor) report(at time.Duration, c *policy.Cycle, m *Memory, live int64) {
	kept := live
	if m != nil {
		kept = max(0, live-m.Freed)
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
		c.Limit, c.Wanted, m.wanted = g.shown(m).Limit, m.wanted, 0
	}
	if g.closed {
		return
	}
	g.rests(c, m, at, kept)
	g.wakeAll(0)
	g.policy.Observe(*c)
}

// An Assist is the part of a cycle that callers of its memory pay. A caller that fills a part of
// the room up to the limit owes the same part of the cycle's expected length. Go's mark makes
// allocations assist it in this way (runtime/mgcpacer.go). The zero value asks for nothing. Share
// is safe for concurrent use.
type Assist struct {
	Memory   *Memory
	live     int64 // when the cycle began
	room     int64 // bytes
	expected time.Duration
}

// Share returns the wait that a caller owes for adding the given bytes.
func (a *Assist) Share(bytes int64) time.Duration {
	if a.Memory == nil || a.room <= 0 {
		return 0
	}
	return time.Duration(min(float64(bytes)/float64(a.room), 1) * float64(a.expected))
}

// Assist returns how long a caller that owes a wait is held beside the cycle under way. It is held
// while a larger part of the room is used than of the cycle's expected length. Assist returns 0 if
// the wait is not worth a timer.
func (g *Governor) Assist(at time.Duration, a *Assist, owed time.Duration) time.Duration {
	used := float64(a.Memory.Live-a.live) / float64(a.room)
	due := g.active.start + time.Duration(min(used, math.MaxInt32)*float64(a.expected))
	return g.hold(at, min(owed, due-at))
}

// A Way says how a caller gives way to a cycle that has just begun.
type Way uint8

const (
	GoOn   Way = iota // go on at once
	Yield             // let other goroutines run once
	Assess            // wait as GiveWay says, unless a processor is free
)

// WayOf returns the way of the nth caller that meets a cycle, counted from 1. On busy processors
// each step of a cycle waits until a goroutine has used up its slice. A cycle of 0.3 ms then takes
// 30 to 60 ms. So the first caller waits for the cycle, and a few more yield. WayOf is safe for
// concurrent use.
func WayOf(n, processors int) Way {
	switch {
	case n == 1:
		return Assess
	case n <= 2*processors:
		return Yield
	}
	return GoOn
}

// GiveWay returns how long the first caller that meets a cycle is held. The shell calls it only if
// no processor is free.
func (g *Governor) GiveWay(at time.Duration) time.Duration { return g.hold(at, g.caps.Assist) }
