package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
)

// A studyReport is written as Markdown.
type studyReport struct {
	*study
	markdown
}

// writeStudy writes the report of a study as Markdown.
func writeStudy(w io.Writer, s *study) error {
	r := &studyReport{study: s}
	r.headline()
	r.costs()
	r.overhead("Wall", (*experiment.Outcome).WallLBO)
	r.overhead("Processor", (*experiment.Outcome).CPULBO)
	r.latency()
	r.robustness()
	r.heldOut()
	r.optimum()
	_, err := w.Write(r.Bytes())
	return err
}

func (r *studyReport) headline() {
	g := r.Grid
	ref, opt := g.Find(reference), g.Find(Best)
	judged := func(p int) []*experiment.Outcome { return g.Select(p, r.judged) }
	ratio := func(outcomes []*experiment.Outcome, to int, m experiment.Metric) string {
		if to < 0 {
			return "-"
		}
		return ratioText(experiment.MeanRatio(outcomes, judged(to), m))
	}
	fmt.Fprintf(r, `## Headline

Limits 1.5x, 2x and 4x of the peak reachable bytes, cycles of 1 and 10 ms, ladder of 2 cycles, %d workloads: %d cells for each policy.
Pause: exposed pause against %s, geometric mean of the cells with 1 ms added to both sides; worst: the largest ratio of any cell, and in how many it is above 1.
Collector: its time against %s's. Objective: exposed + 0.05 x collector time, against %s. Missed: refusals. Wasted: cycles that freed under 1 %%.

`, len(g.Workloads), len(judged(0)), reference, reference, Best)
	r.head("policy", "pause", "worst", "above 1", "collector", "objective", "hidden", "cycles", "wasted", "missed", "failed")
	for p, who := range g.Contenders {
		outcomes := judged(p)
		var worst float64
		above := 0
		if ref >= 0 {
			for i, o := range judged(ref) {
				x := experiment.Exposed.Ratio(&outcomes[i].Result, &o.Result)
				worst = max(worst, x)
				if x > 1 {
					above++
				}
			}
		}
		var runs, wasted, missed, failed int
		for _, o := range outcomes {
			runs += o.Collections + o.RefusalCollections
			wasted += o.Wasted
			missed += o.RefusalCollections
			failed += o.FailedAllocs
		}
		r.row(code(who), ratio(outcomes, ref, experiment.Exposed), ratioText(worst), above, ratio(outcomes, ref, experiment.Busy),
			ratio(outcomes, opt, experiment.Objective), percentText(experiment.Hidden(outcomes)), runs, wasted, missed, failed)
	}
}

func (r *studyReport) costs() {
	g := r.Grid
	fmt.Fprintf(r, "\n## Sensitivity to the cost of a cycle\n\nExposed pause against %s over limits 1.25x to 6x, by the length of a cycle; missed: refusals over all of them. At 1x every policy lives off refusals.\n\n", reference)
	head := []any{"policy"}
	for _, cost := range g.Costs {
		head = append(head, cost.Base.String())
	}
	r.head(append(head, "missed")...)
	ref := g.Find(reference)
	for p, who := range g.Contenders {
		cols := []any{code(who)}
		missed := 0
		for k := range g.Costs {
			keep := func(c experiment.Cell) bool { return c.Cost == k && g.Limits[c.Limit].Factor > 1 }
			outcomes := g.Select(p, keep)
			if ref >= 0 {
				cols = append(cols, ratioText(experiment.MeanRatio(outcomes, g.Select(ref, keep), experiment.Exposed)))
			}
			for _, o := range outcomes {
				missed += o.RefusalCollections
			}
		}
		r.row(append(cols, missed)...)
	}
}

// tenMS reports whether a cycle takes 10 ms.
func (r *studyReport) tenMS(c experiment.Cell) bool {
	return r.Grid.Costs[c.Cost].Base == 10*time.Millisecond
}

func (r *studyReport) overhead(name string, lbo func(*experiment.Outcome) float64) {
	g := r.Grid
	fmt.Fprintf(r, "\n## %s time: lower-bound overhead by limit\n\nGeometric mean over the workloads, cycle 10 ms; 1.000 is none.\n\n", name)
	head := []any{"policy"}
	for _, l := range g.Limits {
		head = append(head, l)
	}
	r.head(head...)
	for p, who := range g.Contenders {
		cols := []any{code(who)}
		for l := range g.Limits {
			outcomes := g.Select(p, func(c experiment.Cell) bool { return c.Limit == l && r.tenMS(c) })
			cols = append(cols, ratioText(experiment.Mean(outcomes, lbo)))
		}
		r.row(cols...)
	}
}

func (r *studyReport) latency() {
	g := r.Grid
	r.WriteString("\n## Latency and utilization\n\nLimit 1.5x, cycle 10 ms. Metered latency of the intervals between syncs (window 100 ms), geometric mean over the workloads; MMU, the least over them.\n\n")
	head := []any{"policy"}
	for _, q := range experiment.Quantiles {
		head = append(head, fmt.Sprintf("p%g", 100*q))
	}
	for _, w := range experiment.Windows {
		head = append(head, "MMU "+w.String())
	}
	r.head(append(head, "longest pause")...)
	for p, who := range g.Contenders {
		outcomes := g.Select(p, func(c experiment.Cell) bool { return g.Limits[c.Limit].Factor == 1.5 && r.tenMS(c) })
		cols := []any{code(who)}
		for q := range experiment.Quantiles {
			ns := experiment.Mean(outcomes, func(o *experiment.Outcome) float64 { return float64(max(1, o.Latency[q])) })
			cols = append(cols, time.Duration(ns).Round(10*time.Microsecond).String())
		}
		var longest time.Duration
		for k := range experiment.Windows {
			least := 1.0
			for _, o := range outcomes {
				least = min(least, o.MMU[k])
				longest = max(longest, o.MaxPause)
			}
			cols = append(cols, percentText(least))
		}
		r.row(append(cols, longest.String())...)
	}
}

func (r *studyReport) robustness() {
	fmt.Fprintf(r, "\n## Robustness\n\nObjective against %s in the judged cells: with true waits, with every expected wait wrong by up to a half, and with a linear cost of 0.1 ms + 0.25 ms per MiB of pointerful Go heap.\n\n", Best)
	head := []any{"policy", "true waits", "wrong waits"}
	for _, cost := range r.Heaps.Costs {
		head = append(head, fmt.Sprintf("heap %g MiB", cost.HeapMiB))
	}
	r.head(head...)
	ratio := func(g *experiment.Grid, p int, keep func(experiment.Cell) bool) string {
		opt := g.Find(Best)
		if opt < 0 {
			return "-"
		}
		return ratioText(experiment.MeanRatio(g.Select(p, keep), g.Select(opt, keep), experiment.Objective))
	}
	for p, who := range r.Grid.Contenders {
		cols := []any{code(who), ratio(r.Grid, p, r.judged), ratio(r.Noisy, p, nil)}
		for k := range r.Heaps.Costs {
			cols = append(cols, ratio(r.Heaps, p, func(c experiment.Cell) bool { return c.Cost == k }))
		}
		r.row(cols...)
	}
}

func (r *studyReport) heldOut() {
	fmt.Fprintf(r, "\n## Train on four, test on the fifth\n\nFor each family, the parameters that do best (objective) on the other workloads, and what they give on the one held out, against %s there. The last columns are the default parameters on the same workload, and the best in hindsight.\n\n", reference)
	r.head("held out", "chosen", "objective", "default", "hindsight")
	for _, h := range r.Held {
		r.row(h.Trace, "`"+h.Chosen+"`", ratioText(h.Ratio), ratioText(h.Default), ratioText(h.Hindsight))
	}
}

func (r *studyReport) optimum() {
	fmt.Fprintf(r, "\n## The optimum\n\nExposed pause of the best overlapped schedule known (%s) and the bound that no schedule beats. Where they agree it is the optimum.\n\n", Best)
	r.head("workload", "limit", "cycle", "best known", "bound", "gap")
	exact := 0
	for _, x := range r.Bounds {
		if x.Known == x.AtLeast {
			exact++
			continue
		}
		r.row(x.Trace, x.Limit, x.Cycle, x.Known, x.AtLeast, x.Known-x.AtLeast)
	}
	fmt.Fprintf(r, "\n%d of %d cells are exact; the others are above.\n", exact, len(r.Bounds))
}

func code(who experiment.Contender) string { return "`" + who.String() + "`" }

func ratioText(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func percentText(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
