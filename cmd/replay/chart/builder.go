package chart

import (
	"fmt"
	"sync"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A Builder makes the tables and charts of a grid that has run. [NewBuilder] returns one. Its
// methods are safe for concurrent use.
type Builder struct {
	Grid    *experiment.Grid
	Cost    int // index of the cost of the figures
	Limit   int // index of the limit of the detailed cells
	Ranks   experiment.Ranks
	Palette Palette
}

// NewBuilder returns a Builder for one cost of a grid. It shows one limit in detail.
func NewBuilder(g *experiment.Grid, cost, limit int) *Builder {
	return &Builder{Grid: g, Cost: cost, Limit: limit, Ranks: g.Rank(cost), Palette: NewPalette(Names(g))}
}

// Cell returns the detailed cell of a workload, without a contender.
func (b *Builder) Cell(workload int) experiment.Cell {
	return experiment.Cell{Workload: workload, Limit: b.Limit, Cost: b.Cost}
}

// Names returns the names of the contenders of a grid.
func Names(g *experiment.Grid) []string {
	var names []string
	for _, p := range g.Contenders {
		names = append(names, p.String())
	}
	return names
}

// LogRuns replays a cell under each contender with a log. It uses a log that the grid has kept.
// It leaves out contenders without a schedule.
func LogRuns(g *experiment.Grid, at experiment.Cell, slots int, reasons bool) []Run {
	w := g.Workloads[at.Workload]
	found := make([]*Run, len(g.Contenders))
	var wg sync.WaitGroup
	for i := range g.Contenders {
		wg.Go(func() {
			c := at
			c.Contender = i
			r, log, err := logRun(g, c, reasons)
			if err == nil {
				found[i] = &Run{Result: r, Log: log, Levels: w.Series(log, r.Elapsed, slots)}
			}
		})
	}
	wg.Wait()
	var runs []Run
	for _, r := range found {
		if r != nil {
			runs = append(runs, *r)
		}
	}
	return runs
}

func logRun(g *experiment.Grid, c experiment.Cell, reasons bool) (sim.Result, *sim.Log, error) {
	if !reasons && len(g.Outcomes()) > 0 && g.At(c).Log != nil {
		o := g.At(c)
		return o.Result, o.Log, o.Err
	}
	cfg := g.Config(c)
	cfg.Log = &sim.Log{KeepReasons: reasons}
	r, err := g.Contenders[c.Contender].Run(g.Workloads[c.Workload], cfg)
	return r, cfg.Log, err
}

// At describes the detailed cell of a recording.
func (b *Builder) At(workload int) string {
	l, cost := b.Grid.Limits[b.Limit], experiment.CostName(b.Grid.Costs[b.Cost])
	if b.Grid.Machine != nil {
		cost = "costs of the machine"
	}
	limit := pressure.Bytes(l.Of(b.Grid.Workloads[workload])).String()
	if l.Factor > 0 {
		limit = fmt.Sprintf("%.3gx (%s)", l.Factor, limit)
	}
	return fmt.Sprintf("a limit of %s, %s", limit, cost)
}

// About describes a workload.
func About(w *sim.Workload) string {
	waits := "no waits"
	if w.Syncs > 0 {
		waits = fmt.Sprintf("%s waits of %s together", pressure.Count(w.Syncs), Duration(w.Wait))
	}
	return fmt.Sprintf("%s allocations, %s in all, %s, %s long; at most %s were reachable at once.",
		pressure.Count(w.Allocs), pressure.Bytes(w.AllocatedBytes).String(), waits, Duration(w.Span), pressure.Bytes(w.PeakReachable).String())
}
