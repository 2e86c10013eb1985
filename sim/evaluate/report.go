package evaluate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/eagergc/eagergc/sim"
)

// The settings of a report. The headline is judged on Judged factors and
// costs; the others show where that ends.
var (
	Factors = []float64{1, 1.25, 1.5, 2, 3, 4, 6}
	Judged  = map[float64]bool{1.5: true, 2: true, 4: true}
	cycles  = []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}
	judged  = map[time.Duration]bool{time.Millisecond: true, 10 * time.Millisecond: true}
)

const (
	reference = "cudajl"          // what exposed pause and collector time are held against
	best      = "optimum-overlap" // what the objective is held against
)

// A Report is everything that [Report.Write] shows.
type Report struct {
	Cells   *Cells   // Factors x cycles, true waits
	Noisy   *Cells   // judged cells, waits told wrong by up to a half
	Heaps   *Cells   // judged factors, cost from a pointerful heap of HeapMiB
	Bounds  []Bound  // of optimum-overlap
	Held    []Choice // leave-one-out
	HeapMiB []float64
}

// A Bound is how far the best schedule known is from what none can beat.
type Bound struct {
	Trace          string
	Factor         float64
	Cycle          time.Duration
	Known, AtLeast time.Duration // exposed pause
}

// New runs everything: some thousand replays.
func New(ctx context.Context, ws []*sim.Workload, contenders []sim.Contender) (*Report, error) {
	ladder := sim.Ladder{Factor: 2}
	var costs, some, heaps []sim.Cost
	for _, g := range cycles {
		costs = append(costs, sim.Fixed(g))
		if judged[g] {
			some = append(some, sim.Fixed(g))
		}
	}
	r := &Report{HeapMiB: []float64{1, 16, 64, 256, 1024}}
	for _, mib := range r.HeapMiB { // 0.1 ms for an empty heap and 0.25 ms per MiB, about what two cores take
		heaps = append(heaps, sim.Cost{Base: 100 * time.Microsecond, PerMiB: 250 * time.Microsecond, HeapMiB: mib})
	}
	var strict []float64
	for _, f := range Factors {
		if Judged[f] {
			strict = append(strict, f)
		}
	}
	var err error
	run := func(factors []float64, costs []sim.Cost, noise float64) *Cells {
		c, e := Plan{ws, contenders, factors, costs, ladder, noise}.Run(ctx)
		if e != nil {
			err = e
		}
		return c
	}
	r.Cells = run(Factors, costs, 0)
	r.Noisy = run(strict, some, 0.5)
	r.Heaps = run(strict, heaps, 0)
	if err != nil {
		return nil, err
	}
	r.bounds(ws, ladder)
	r.Held, err = LeaveOneOut(ctx, ws, strict, some, ladder)
	return r, err
}

func (r *Report) bounds(ws []*sim.Workload, ladder sim.Ladder) {
	for _, w := range ws {
		for _, f := range Factors[1:] {
			for _, g := range cycles[1:4] {
				cfg := sim.Config{Limit: int64(math.Floor(f * float64(w.PeakReachable))), Cost: sim.Fixed(g), Ladder: ladder}
				if s, bound, err := sim.OptimumOverlap(w, cfg); err == nil {
					r.Bounds = append(r.Bounds, Bound{Trace: w.Name, Factor: f, Cycle: g, Known: s.Exposed, AtLeast: bound})
				}
			}
		}
	}
}

func headline(d *Detail) bool { return Judged[d.Factor] && judged[d.Cycle] }

// Write writes the report as Markdown.
func (r *Report) Write(w io.Writer) error {
	var b bytes.Buffer
	r.writeHeadline(&b)
	r.writeCosts(&b)
	r.writeLBO(&b, "Wall", (*Detail).WallLBO)
	r.writeLBO(&b, "Processor", (*Detail).CPULBO)
	r.writeLatency(&b)
	r.writeRobust(&b)
	r.writeHeld(&b)
	r.writeBounds(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Report) writeHeadline(b *bytes.Buffer) {
	c := r.Cells
	ref, opt := c.Find(reference), c.Find(best)
	fmt.Fprintf(b, `## Headline

Limits 1.5x, 2x and 4x of the peak reachable bytes, cycles of 1 and 10 ms, ladder of 2 cycles, %d workloads: %d cells for each policy.
Pause: exposed pause against %s, geometric mean of the cells with 1 ms added to both sides; worst: the largest ratio of any cell, and in how many it is above 1.
Collector: its time against %s's. Objective: exposed + 0.05 x collector time, against %s. Missed: refusals. Wasted: cycles that freed under 1 %%.

`, len(c.Workloads), len(c.Of(0, headline)), reference, reference, best)
	table(b, "policy", "pause", "worst", "above 1", "collector", "objective", "hidden", "cycles", "wasted", "missed", "failed")
	for p, who := range c.Contenders {
		cells := c.Of(p, headline)
		var worst float64
		above := 0
		if ref >= 0 {
			for i, d := range c.Of(ref, headline) {
				x := Ratio(cells[i:i+1], []*Detail{d}, Exposed)
				worst = max(worst, x)
				if x > 1 {
					above++
				}
			}
		}
		var runs, wasted, missed, failed int
		for _, d := range cells {
			runs += d.Collections + d.RefusalCollections
			wasted += d.Wasted
			missed += d.RefusalCollections
			failed += d.FailedAllocs
		}
		row(b, code(who.String()), ratioTo(c, cells, ref, Exposed), number(worst), above, ratioTo(c, cells, ref, Busy), ratioTo(c, cells, opt, Objective),
			percent(Hidden(cells)), runs, wasted, missed, failed)
	}
}

func ratioTo(c *Cells, cells []*Detail, reference int, metric func(*sim.Result) time.Duration) string {
	if reference < 0 {
		return "-"
	}
	return number(Ratio(cells, c.Of(reference, headline), metric))
}

func (r *Report) writeCosts(b *bytes.Buffer) {
	c := r.Cells
	fmt.Fprintf(b, "\n## Sensitivity to the cost of a cycle\n\nExposed pause against %s over limits 1.25x to 6x, by the length of a cycle; missed: refusals over all of them. At 1x every policy lives off refusals.\n\n", reference)
	head := []any{"policy"}
	for _, g := range cycles {
		head = append(head, g.String())
	}
	table(b, append(head, "missed")...)
	ref := c.Find(reference)
	for p, who := range c.Contenders {
		cols := []any{code(who.String())}
		missed := 0
		for _, g := range cycles {
			keep := func(d *Detail) bool { return d.Cycle == g && d.Factor > 1 }
			cells := c.Of(p, keep)
			if ref >= 0 {
				cols = append(cols, number(Ratio(cells, c.Of(ref, keep), Exposed)))
			}
			for _, d := range cells {
				missed += d.RefusalCollections
			}
		}
		row(b, append(cols, missed)...)
	}
}

func (r *Report) writeLBO(b *bytes.Buffer, name string, lbo func(*Detail) float64) {
	c := r.Cells
	fmt.Fprintf(b, "\n## %s time: lower-bound overhead by limit\n\nGeometric mean over the workloads, cycle 10 ms; 1.000 is none.\n\n", name)
	head := []any{"policy"}
	for _, f := range Factors {
		head = append(head, fmt.Sprintf("%gx", f))
	}
	table(b, head...)
	for p, who := range c.Contenders {
		cols := []any{code(who.String())}
		for _, f := range Factors {
			cells := c.Of(p, func(d *Detail) bool { return d.Factor == f && d.Cycle == 10*time.Millisecond })
			cols = append(cols, number(Mean(cells, func(_ int, d *Detail) float64 { return lbo(d) })))
		}
		row(b, cols...)
	}
}

func (r *Report) writeLatency(b *bytes.Buffer) {
	c := r.Cells
	b.WriteString("\n## Latency and utilization\n\nLimit 1.5x, cycle 10 ms. Metered latency of the intervals between syncs (window 100 ms), geometric mean over the workloads; MMU, the least over them.\n\n")
	head := []any{"policy"}
	for _, q := range Quantiles {
		head = append(head, fmt.Sprintf("p%g", 100*q))
	}
	for _, w := range Windows {
		head = append(head, "MMU "+w.String())
	}
	table(b, append(head, "longest pause")...)
	for p, who := range c.Contenders {
		cells := c.Of(p, func(d *Detail) bool { return d.Factor == 1.5 && d.Cycle == 10*time.Millisecond })
		cols := []any{code(who.String())}
		for q := range Quantiles {
			ns := Mean(cells, func(_ int, d *Detail) float64 { return float64(max(1, d.Latency[q])) })
			cols = append(cols, time.Duration(ns).Round(10*time.Microsecond).String())
		}
		var longest time.Duration
		for k := range Windows {
			least := 1.0
			for _, d := range cells {
				least = min(least, d.MMU[k])
				longest = max(longest, d.MaxPause)
			}
			cols = append(cols, percent(least))
		}
		row(b, append(cols, longest.String())...)
	}
}

func (r *Report) writeRobust(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## Robustness\n\nObjective against %s in the judged cells: with true waits, with every expected wait wrong by up to a half, and with a linear cost of 0.1 ms + 0.25 ms per MiB of pointerful Go heap.\n\n", best)
	head := []any{"policy", "true waits", "wrong waits"}
	for _, mib := range r.HeapMiB {
		head = append(head, fmt.Sprintf("heap %g MiB", mib))
	}
	table(b, head...)
	at := func(c *Cells, p int, keep func(*Detail) bool) string {
		opt := c.Find(best)
		if opt < 0 {
			return "-"
		}
		return number(Ratio(c.Of(p, keep), c.Of(opt, keep), Objective))
	}
	for p, who := range r.Cells.Contenders {
		cols := []any{code(who.String()), at(r.Cells, p, headline), at(r.Noisy, p, nil)}
		for k := range r.HeapMiB {
			g := r.Heaps.Costs[k].Of(0, 0)
			cols = append(cols, at(r.Heaps, p, func(d *Detail) bool { return d.Cycle == g }))
		}
		row(b, cols...)
	}
}

func (r *Report) writeHeld(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## Train on four, test on the fifth\n\nFor each family, the parameters that do best (objective) on the other workloads, and what they give on the one held out, against %s there. The last columns are the default parameters on the same workload, and the best in hindsight.\n\n", reference)
	table(b, "held out", "chosen", "objective", "default", "hindsight")
	for _, h := range r.Held {
		row(b, h.Trace, code(h.Chosen), number(h.Ratio), number(h.Default), number(h.Hindsight))
	}
}

func (r *Report) writeBounds(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## The optimum\n\nExposed pause of the best overlapped schedule known (%s) and the bound that no schedule beats. Where they agree it is the optimum.\n\n", best)
	table(b, "workload", "limit", "cycle", "best known", "bound", "gap")
	exact := 0
	for _, x := range r.Bounds {
		if x.Known == x.AtLeast {
			exact++
			continue
		}
		row(b, x.Trace, fmt.Sprintf("%gx", x.Factor), x.Cycle, x.Known, x.AtLeast, x.Known-x.AtLeast)
	}
	fmt.Fprintf(b, "\n%d of %d cells are exact; the others are above.\n", exact, len(r.Bounds))
}

func table(b *bytes.Buffer, head ...any) {
	row(b, head...)
	b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
}

func row(b *bytes.Buffer, cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %v ", c)
	}
	b.WriteString("|\n")
}

func code(text string) string { return "`" + text + "`" }

func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
