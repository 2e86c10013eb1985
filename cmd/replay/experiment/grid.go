package experiment

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/sim"
)

// A Grid is the product of its workloads, limits, costs and contenders: one cell for each
// combination. The zero value has no cells. A Grid is for one goroutine at a time. Run itself
// uses all cores.
type Grid struct {
	Workloads  []*sim.Workload
	Limits     []Limit
	Costs      []sim.Cost
	Contenders []Contender
	Ladder     sim.Ladder
	Logs       func(Cell) bool              // whose logs to keep; nil: of no cell
	Machine    *sim.Machine                 // the world of all cells, see SetMachine; nil: the base world
	Seed       uint64                       // of the machine's noise
	Memory     func(limit int64) sim.Memory // memory of a cell with a machine; nil: see sim.Config

	outcomes []*Outcome // by workload, limit, cost, contender; nil: not run yet
}

// A Cell is a combination, by the indices of its settings in the Grid.
type Cell struct{ Workload, Limit, Cost, Contender int }

// Len is the number of cells.
func (g *Grid) Len() int {
	return len(g.Workloads) * len(g.Limits) * len(g.Costs) * len(g.Contenders)
}

// Cell returns cell i: by workload, then limit, cost and contender.
func (g *Grid) Cell(i int) Cell {
	var c Cell
	i, c.Contender = i/len(g.Contenders), i%len(g.Contenders)
	i, c.Cost = i/len(g.Costs), i%len(g.Costs)
	c.Workload, c.Limit = i/len(g.Limits), i%len(g.Limits)
	return c
}

// Config returns the configuration of a cell, with a new memory.
func (g *Grid) Config(c Cell) sim.Config {
	return g.World(c.Cost)(g.Limits[c.Limit].Of(g.Workloads[c.Workload]))
}

// A World returns the configuration of a run under a limit in bytes, with a new memory.
type World func(limit int64) sim.Config

// World returns the world of the cells of one cost.
func (g *Grid) World(cost int) World {
	return func(limit int64) sim.Config {
		cfg := sim.Config{Limit: limit, Cost: g.Costs[cost], Ladder: g.Ladder, Machine: g.Machine, Seed: g.Seed}
		cfg.Told.Learned = g.Machine != nil
		if g.Memory != nil {
			cfg.Memory = g.Memory(limit)
		}
		return cfg
	}
}

// SetMachine makes m the world of all cells. The grid then has one cost and one ladder: those of
// the machine's first cycle. They name the results.
func (g *Grid) SetMachine(m *sim.Machine, seed uint64) {
	g.Machine, g.Seed = m, seed
	cycle := m.Cycle(0, 0, 0)
	g.Costs, g.Ladder = []sim.Cost{sim.Fixed(cycle)}, sim.Ladder{Fixed: cycle + m.Ladder}
}

// Name is the name of a cell in benchmark files, without the word Benchmark.
func (g *Grid) Name(c Cell) string {
	cycle := g.Costs[c.Cost].Base.String()
	if g.Machine != nil {
		cycle = "machine"
	}
	return fmt.Sprintf("Replay/trace=%s/policy=%s/limit=%s/cycle=%s/ladder=%s",
		g.Workloads[c.Workload].Name, g.Contenders[c.Contender], g.Limits[c.Limit], cycle, g.Ladder)
}

// CostName is the name of a cost in tables.
func (g *Grid) CostName(cost int) string {
	if g.Machine != nil {
		return "machine"
	}
	return CostName(g.Costs[cost])
}

// CostName is the name of a cost in a picture or a sentence.
func CostName(c sim.Cost) string { return "cycle " + c.Base.String() }

// At returns the outcome of a cell. The grid must have run.
func (g *Grid) At(c Cell) *Outcome {
	return g.outcomes[((c.Workload*len(g.Limits)+c.Limit)*len(g.Costs)+c.Cost)*len(g.Contenders)+c.Contender]
}

// Outcomes returns the outcomes of all cells in order. The grid must have run.
func (g *Grid) Outcomes() []*Outcome { return g.outcomes }

// Finished returns the results at one cost. It leaves out cells whose run failed.
func (g *Grid) Finished(cost int) []sim.Result {
	var results []sim.Result
	for i, o := range g.outcomes {
		if o.Err == nil && g.Cell(i).Cost == cost {
			results = append(results, o.Result)
		}
	}
	return results
}

// Know takes known results, whose cells Run leaves out.
func (g *Grid) Know(results []sim.Result) {
	known := make(map[key]*sim.Result)
	for i := range results {
		known[keyOf(&results[i])] = &results[i]
	}
	g.outcomes = make([]*Outcome, g.Len())
	for i := range g.outcomes {
		c := g.Cell(i)
		if r, ok := known[g.key(c)]; ok {
			g.outcomes[i] = &Outcome{Result: *r, Host: hostTime(g.Workloads[c.Workload])}
		}
	}
}

// Run runs the cells without an outcome, on all cores (GOMAXPROCS). The outcomes do not depend on
// the number of cores, except with pools that keep freed memory: these have a cache for each core. After
// each cell Run calls progress, if it is not nil, with the share of the cells that it has run. These
// calls may be concurrent. Run returns the error of the context. All cells have outcomes only if it
// returns nil.
func (g *Grid) Run(ctx context.Context, progress func(share float64)) error {
	if g.outcomes == nil {
		g.outcomes = make([]*Outcome, g.Len())
	}
	var todo []int
	for i, o := range g.outcomes {
		if o == nil {
			todo = append(todo, i)
		}
	}
	var ran atomic.Int64
	var cores errgroup.Group
	cores.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range todo {
		cores.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			g.outcomes[i] = g.run(g.Cell(i))
			if n := ran.Add(1); progress != nil {
				progress(float64(n) / float64(len(todo)))
			}
			return nil
		})
	}
	return cores.Wait()
}

// hostTime returns the time of a program without its waits, which may overlap on several
// goroutines.
func hostTime(w *sim.Workload) time.Duration { return max(0, w.Span-w.Wait) }

func (g *Grid) run(c Cell) *Outcome {
	w, who, cfg := g.Workloads[c.Workload], g.Contenders[c.Contender], g.Config(c)
	o := &Outcome{Host: hostTime(w)}
	if g.Logs != nil && g.Logs(c) {
		o.Log = new(sim.Log)
	}
	cfg.Log = o.Log
	o.Result, o.Err = who.Run(w, cfg)
	return o
}
