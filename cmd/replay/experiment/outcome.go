package experiment

import (
	"time"

	"github.com/eagergc/eagergc/sim"
)

// An Outcome is the result of a cell, or why it has none.
type Outcome struct {
	sim.Result
	Err  error         // of an optimum: sim.ErrNoSchedule or sim.ErrTooLong
	Host time.Duration // span less waits: what the program itself took
	Log  *sim.Log      // without decisions; nil unless the Grid keeps it

	// Details, if the Grid asks for them.
	Wasted  int             // cycles that freed under 1 % of what was live
	Latency []time.Duration // metered over 100 ms, at Quantiles; nil without syncs
	MMU     []float64       // at Windows
}

// Quantiles are those of [Outcome.Latency].
var Quantiles = []float64{0.5, 0.99, 0.999, 0.9999}

// Windows are those of [Outcome.MMU].
var Windows = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// read fills in the details.
func (o *Outcome) read(w *sim.Workload, log *sim.Log) {
	o.Wasted = log.Wasted()
	o.MMU = MMU(log, o.Elapsed, Windows)
	if sorted := w.Latencies(log, 100*time.Millisecond); len(sorted) > 0 {
		for _, q := range Quantiles {
			o.Latency = append(o.Latency, sorted[min(len(sorted)-1, int(q*float64(len(sorted))))])
		}
	}
}

// WallLBO is the overhead of elapsed time over the span, 1 if there is none.
func (o *Outcome) WallLBO() float64 { return float64(o.Elapsed) / float64(max(1, o.Span)) }

// CPULBO is the overhead of processor time over the host's own.
func (o *Outcome) CPULBO() float64 {
	return float64(o.Host+o.GCBusy) / float64(max(1, o.Host))
}

// Hidden is the share of collector time that no caller was held for.
func Hidden(outcomes []*Outcome) float64 {
	var busy, exposed time.Duration
	for _, o := range outcomes {
		busy += o.GCBusy
		exposed += min(o.GCBusy, o.ExposedPause)
	}
	return 1 - float64(exposed)/float64(max(1, busy))
}

// A Key says what was run, in a result and in a cell alike.
type Key struct {
	Trace, Policy string
	Limit         int64 // bytes
	Cycle, Ladder time.Duration
}

// keyOf returns the key of a result.
func keyOf(r *sim.Result) Key { return Key{r.Trace, r.Policy, r.LimitBytes, r.Cycle, r.Ladder} }

// ByKey finds results by what was run. Of several the last counts.
func ByKey(results []sim.Result) map[Key]sim.Result {
	all := make(map[Key]sim.Result, len(results))
	for _, r := range results {
		all[keyOf(&r)] = r
	}
	return all
}

func (g *Grid) key(c Cell) Key {
	cycle := g.Costs[c.Cost].Of(0, 0)
	w := g.Workloads[c.Workload]
	return Key{w.Name, g.Contenders[c.Contender].String(), g.Limits[c.Limit].Of(w), cycle, g.Ladder.Of(cycle)}
}

// FixedCycle returns the length of a cycle where it is the same for all.
func FixedCycle(c sim.Cost) (time.Duration, bool) {
	g := c.Of(0, 0)
	return g, c == sim.Fixed(g)
}
