package governor

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

const (
	slice       = 10 * time.Millisecond // how long a goroutine runs while others wait (forcePreemptNS in runtime/proc.go)
	longestWait = time.Second           // between two calls of Later
)

// An idle finds out whether the program allocates.
type idle struct {
	gross  int64         // bytes allocated in all, at the last call
	served int64         // gross at the last cycle for an idle program
	later  *Memory       // nil, or the memory that Later asks about
	wait   time.Duration // until the next call of Later
}

// Quiet is called each time that the idle interval has passed. If the program has allocated
// nothing since the last call, Quiet orders one cycle for the garbage that is left. It returns false
// if no further call is needed until something is tracked again. Gauges do not count, because they
// ask for themselves.
func (g *Governor) Quiet(at time.Duration) (o Order, more bool) {
	i := &g.idle
	g.Top = nil
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
		return o, false
	}
	if quiet && !g.Running && g.mayBegin(at) {
		i.served = gross
		o.Begin, o.Cause = true, Cause{policy.TriggerExplicit, policy.Overlap, "idle", g.MostPressed()}
	}
	return o, true
}

// Later asks the policy again about the memory of the last cycle, which freed something. Objects
// that die between two allocations would otherwise go unnoticed. The shell calls it when Order.Again
// has passed.
func (g *Governor) Later(at time.Duration) (o Order) {
	i := &g.idle
	if g.Top = nil; i.later == nil || g.Running || g.closed {
		return o
	}
	if i.later.Rest.Over(at, i.later.Live) {
		o = g.Allocate(at, i.later, 0)
		o.Action = min(o.Action, policy.Overlap)
	}
	if i.wait < longestWait {
		i.wait *= 2
		o.Again = i.wait
	}
	return o
}
