package governor

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// An idle finds out whether the program allocates.
type idle struct {
	gross  int64 // bytes allocated in all, at the last call
	served int64 // gross at the last cycle for an idle program
}

// Quiet is called after each idle interval. If the program has allocated nothing since the last
// call, Quiet orders one cycle for the garbage that is left. More is false if no further call is
// needed until something is tracked again. Gauges do not count, because they ask for themselves.
func (g *Governor) Quiet(at time.Duration) (o Order, more bool) {
	i := &g.idle
	g.Top = nil
	live, gross := g.counted()
	quiet := gross == i.gross
	i.gross = gross
	if g.closed || quiet && (live == 0 || gross == i.served || g.policy.String() == "never") {
		return o, false
	}
	if quiet && !g.Running && g.mayBegin(at) {
		i.served = gross
		o.Begin, o.Cause = true, Cause{policy.TriggerExplicit, policy.Overlap, "idle", g.MostPressed(nil, 0)}
	}
	return o, true
}
