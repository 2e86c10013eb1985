package governor

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// slice is how long a goroutine runs while others wait (forcePreemptNS in runtime/proc.go).
const slice = 10 * time.Millisecond

// longestLater ends the calls of Later: once the wait between them has reached it, no further call
// is ordered.
const longestLater = time.Second

// An idle finds out whether the program allocates.
type idle struct {
	gross  int64 // bytes allocated in all, at the last call
	served int64 // gross at the last cycle for an idle program
	later  later
}

// A later is a memory about which the policy is asked without an allocation. Objects that die
// between two allocations would otherwise go unnoticed.
type later struct {
	memory *Memory
	wait   time.Duration
}

// Quiet is called each time that the idle interval has passed. If the program has allocated
// nothing since the last call, Quiet orders one cycle for the garbage that is left. Order.Again is
// the time to the next call. 0 means that no call is needed until something is tracked again.
// Gauges do not count, because they ask for themselves.
func (g *Governor) Quiet(at time.Duration) (o Order) {
	i := &g.idle
	var gross, live int64
	for _, m := range g.memories {
		if !m.Gauge {
			gross += m.Allocated
			live += m.Live
		}
	}
	quiet := gross == i.gross
	i.gross = gross
	if g.closed || quiet && (live == 0 || gross == i.served || g.policy.String() == "never") {
		return o
	}
	o.Again = g.IdleEvery
	if quiet && !g.Running && g.mayBegin(at) {
		i.served = gross
		o.Begin, o.Action = true, policy.Overlap
		g.Top = g.mostPressed(nil, 0)
		g.Answer = policy.Decision{Action: policy.Overlap, Reason: "idle"}
	}
	return o
}

// Later asks the policy again about the memory of the last cycle, which freed something. It
// reports whether it has asked. The shell calls it when Order.Again has passed.
func (g *Governor) Later(at time.Duration) (o Order, asked bool) {
	l := &g.idle.later
	if l.memory == nil || g.Running || g.closed {
		return o, false
	}
	if asked = l.memory.Rest.Over(at, l.memory.Live); asked {
		o = g.Allocate(at, l.memory, 0)
		o.Action = min(o.Action, policy.Overlap)
	}
	if l.wait < longestLater {
		l.wait *= 2
		o.Again = l.wait
	}
	return o, asked
}
