package experiment

import (
	"time"

	"github.com/eagergc/eagergc/sim"
)

// An Outcome is the result of a cell, or the reason that it has none.
type Outcome struct {
	sim.Result
	Err  error         // of an optimum: sim.ErrNoSchedule or sim.ErrTooLong
	Host time.Duration // span without waits: the time of the program itself
	Log  *sim.Log      // without decisions; nil unless the Grid keeps it
}

// Windows are the windows of the tables of [MMU].
var Windows = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// WallLBO returns the elapsed time over the span: 1 without overhead.
func (o *Outcome) WallLBO() float64 { return float64(o.Elapsed) / float64(max(1, o.Span)) }

// CPULBO returns the processor time over that of the host alone.
func (o *Outcome) CPULBO() float64 {
	return float64(o.Host+o.GCBusy) / float64(max(1, o.Host))
}

// A key identifies a run, by a result or by a cell.
type key struct {
	trace, policy string
	limit         int64 // bytes
	cycle, ladder time.Duration
}

func keyOf(r *sim.Result) key { return key{r.Trace, r.Policy, r.LimitBytes, r.Cycle, r.Ladder} }

func (g *Grid) key(c Cell) key {
	cycle := g.Costs[c.Cost].Base
	w := g.Workloads[c.Workload]
	return key{w.Name, g.Contenders[c.Contender].String(), g.Limits[c.Limit].Of(w), cycle, g.Ladder.Of(cycle)}
}
