package evaluate

import (
	"context"
	"math"
	"time"

	"github.com/montanaflynn/stats"

	"github.com/eagergc/eagergc/sim"
)

// A Detail is the outcome of one cell, with what only its log tells.
type Detail struct {
	sim.Result
	Err     error
	Factor  float64         // the limit factor that was asked for
	Host    time.Duration   // span less waits
	Wasted  int             // cycles that freed under 1 %
	Latency []time.Duration // metered over 100 ms, at Quantiles
	MMU     []float64       // at Windows
}

// Quantiles are those of Detail.Latency.
var Quantiles = []float64{0.5, 0.99, 0.999, 0.9999}

// Windows are those of Detail.MMU.
var Windows = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// A Plan is a product of runs.
type Plan struct {
	Workloads  []*sim.Workload
	Contenders []sim.Contender
	Factors    []float64 // limits, as factors of the peak reachable bytes
	Costs      []sim.Cost
	Ladder     sim.Ladder
	WaitNoise  float64
}

// Run runs the plan on all cores, and returns its cells by cost, contender,
// factor and workload: see Cells.At.
func (p Plan) Run(ctx context.Context) (*Cells, error) {
	var cells []sim.Cell
	var logs []*sim.Log
	c := &Cells{Plan: p}
	for _, cost := range p.Costs {
		for _, who := range p.Contenders {
			for _, f := range p.Factors {
				for _, w := range p.Workloads {
					log := &sim.Log{}
					logs = append(logs, log)
					cells = append(cells, sim.Cell{Workload: w, Contender: who, Config: sim.Config{
						Limit: int64(math.Floor(f * float64(w.PeakReachable))), Cost: cost, Ladder: p.Ladder, WaitNoise: p.WaitNoise, Log: log,
					}})
					c.Details = append(c.Details, Detail{Factor: f, Host: w.Span - w.Wait})
				}
			}
		}
	}
	for i, o := range sim.RunAll(ctx, cells, nil) {
		d := &c.Details[i]
		d.Result, d.Err = o.Result, o.Err
		if o.Err == nil {
			d.read(cells[i].Workload, logs[i])
		}
	}
	return c, ctx.Err()
}

func (d *Detail) read(w *sim.Workload, log *sim.Log) {
	for _, c := range log.Cycles {
		if c.Wasted {
			d.Wasted++
		}
	}
	d.MMU = log.MMU(d.Elapsed, Windows)
	if sorted := w.Latencies(log, 100*time.Millisecond); len(sorted) > 0 {
		for _, q := range Quantiles {
			d.Latency = append(d.Latency, sorted[min(len(sorted)-1, int(q*float64(len(sorted))))])
		}
	}
}

// Cells are the details of a plan that has run.
type Cells struct {
	Plan
	Details []Detail
}

// At returns one cell by the indices of its settings.
func (c *Cells) At(cost, contender, factor, workload int) *Detail {
	i := (cost*len(c.Contenders)+contender)*len(c.Factors) + factor
	return &c.Details[i*len(c.Workloads)+workload]
}

// Of returns all cells of one contender at the costs and factors for which
// keep is true (nil keeps all), in an order that is the same for every
// contender.
func (c *Cells) Of(contender int, keep func(d *Detail) bool) []*Detail {
	var all []*Detail
	for k := range c.Costs {
		for f := range c.Factors {
			for w := range c.Workloads {
				if d := c.At(k, contender, f, w); keep == nil || keep(d) {
					all = append(all, d)
				}
			}
		}
	}
	return all
}

// Find returns the index of a contender by its text form, or -1.
func (c *Cells) Find(name string) int {
	for i, who := range c.Contenders {
		if who.String() == name {
			return i
		}
	}
	return -1
}

// Mean is the geometric mean of of over some cells, NaN if there are none or
// one has no outcome.
func Mean(cells []*Detail, of func(i int, d *Detail) float64) float64 {
	var xs []float64
	for i, d := range cells {
		if d.Err != nil {
			return math.NaN()
		}
		xs = append(xs, of(i, d))
	}
	m, err := stats.GeometricMean(xs)
	if err != nil {
		return math.NaN()
	}
	return m
}

// Ratio is the geometric mean of (metric + 1 ms) / (the reference's + 1 ms),
// cell by cell.
func Ratio(cells, reference []*Detail, metric func(*sim.Result) time.Duration) float64 {
	if len(cells) != len(reference) {
		return math.NaN()
	}
	const small = float64(time.Millisecond)
	return Mean(cells, func(i int, d *Detail) float64 {
		if reference[i].Err != nil {
			return math.NaN()
		}
		return (float64(metric(&d.Result)) + small) / (float64(metric(&reference[i].Result)) + small)
	})
}

// Exposed, like Busy and Objective, is a metric for [Ratio]: the sum of pauses.
func Exposed(r *sim.Result) time.Duration { return r.ExposedPause }

// Busy is the time of all cycles, hidden ones included.
func Busy(r *sim.Result) time.Duration { return r.GCBusy }

// Objective is that of [sim.Result.Objective].
func Objective(r *sim.Result) time.Duration { return r.Objective() }

// WallLBO is the overhead of elapsed time over the span, 1 if there is none.
func (d *Detail) WallLBO() float64 { return float64(d.Elapsed) / float64(max(1, d.Span)) }

// CPULBO is the overhead of processor time over the host's own.
func (d *Detail) CPULBO() float64 {
	return float64(d.Host+d.GCBusy) / float64(max(1, d.Host))
}

// Hidden is the share of collector time that no caller was held for.
func Hidden(cells []*Detail) float64 {
	var busy, exposed time.Duration
	for _, d := range cells {
		busy += d.GCBusy
		exposed += min(d.GCBusy, d.ExposedPause)
	}
	return 1 - float64(exposed)/float64(max(1, busy))
}
