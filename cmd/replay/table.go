package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/montanaflynn/stats"

	"github.com/eagergc/eagergc/sim"
)

// writeTable prints a block for each workload and cost, a summary over the
// workloads, and a verdict.
func writeTable(w io.Writer, c *comparison) error {
	out := &printer{w: w}
	fmt.Fprintln(out, "Each cell: exposed pause, then collections as asked for by the policy + forced by a refusal;")
	fmt.Fprintln(out, "!n = n allocations failed even so. A limit such as 1.5x is a factor of the peak reachable bytes.")
	for i, load := range c.workloads {
		fmt.Fprintf(out, "\n%s: %s allocations, %s waits, %s, peak reachable %s\n", load.Name,
			formatCount(load.Allocs), formatCount(load.Syncs), formatDuration(load.Span), formatBytes(load.PeakReachable))
		for j := range c.costs {
			c.block(i, j).print(out)
		}
	}
	fmt.Fprintf(out, "\nTime lost, %s: (exposed pause + %v x collector time) / recorded time\n", c.meanOver(), sim.CPUPrice)
	for j := range c.costs {
		c.summary(j).print(out)
	}
	fmt.Fprintln(out)
	for j := range c.costs {
		fmt.Fprintln(out, c.verdict(j))
	}
	return out.err
}

// A printer keeps the first error of its writer, so that a table is printed
// without asking after each line.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) Write(b []byte) (int, error) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
	return len(b), nil
}

func (c *comparison) meanOver() string {
	if len(c.workloads) == 1 {
		return "on " + c.workloads[0].Name
	}
	return fmt.Sprintf("geometric mean over %d workloads", len(c.workloads))
}

func (c *comparison) costName(cost int) string { return costName(c.costs[cost]) }

func costName(c sim.Cost) string {
	g := c.Of(0, 0)
	if c != sim.Fixed(g) {
		return "cycle of model"
	}
	return "cycle " + g.String()
}

// block is the table of one workload at one cost: a policy to a row, a limit
// to a column.
func (c *comparison) block(workload, cost int) grid {
	head := []string{c.costName(cost)}
	for _, l := range c.limits {
		head = append(head, l.String(), left)
	}
	g := grid{head}
	for p, name := range c.contenders {
		row := []string{name.String()}
		for l := range c.limits {
			pause, cycles := cellText(c.at(workload, l, cost, p))
			row = append(row, pause, left+cycles)
		}
		g = append(g, row)
	}
	return g
}

func cellText(o *sim.Outcome) (pause, cycles string) {
	if errors.Is(o.Err, sim.ErrNoSchedule) {
		return "none", "fits"
	}
	cycles = fmt.Sprintf("%d+%d", o.Collections, o.RefusalCollections)
	if o.FailedAllocs > 0 {
		cycles += fmt.Sprintf(" !%d", o.FailedAllocs)
	}
	return formatDuration(o.ExposedPause), cycles
}

// summary is the table over all workloads at one cost.
func (c *comparison) summary(cost int) grid {
	head := []string{c.costName(cost)}
	for _, l := range c.limits {
		head = append(head, l.String())
	}
	g := grid{append(head, "all limits", "max pause", "failed")}
	for p, name := range c.contenders {
		row := []string{name.String()}
		for l := range c.limits {
			row = append(row, lostText(c.lost(cost, p, l)))
		}
		longest, failed := c.worst(cost, p)
		g = append(g, append(row, lostText(c.lost(cost, p, -1)), formatDuration(longest), formatCount(failed)))
	}
	return g
}

func lostText(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return formatPercent(share)
}

// lost is the geometric mean of 1 + objective / span over the workloads, less
// 1, at one limit or, if it is negative, at all that can be met. It is NaN if a
// run is missing.
func (c *comparison) lost(cost, contender, limit int) float64 {
	var ratios []float64
	for i, w := range c.workloads {
		for l := range c.limits {
			if limit >= 0 && l != limit || limit < 0 && !c.possible(i, l) {
				continue
			}
			o := c.at(i, l, cost, contender)
			if o.Err != nil {
				return math.NaN()
			}
			ratios = append(ratios, 1+float64(o.Objective())/float64(max(1, w.Span)))
		}
	}
	mean, err := stats.GeometricMean(ratios)
	if err != nil {
		return math.NaN()
	}
	return mean - 1
}

// possible reports whether a limit can be met at all: what is reachable must fit.
func (c *comparison) possible(workload, l int) bool {
	w := c.workloads[workload]
	return c.limits[l].of(w) >= w.PeakReachable
}

// worst returns the longest pause and the number of failed allocations.
func (c *comparison) worst(cost, contender int) (longest time.Duration, failed int) {
	for i := range c.workloads {
		for l := range c.limits {
			o := c.at(i, l, cost, contender)
			longest = max(longest, o.MaxPause)
			failed += o.FailedAllocs
		}
	}
	return longest, failed
}
