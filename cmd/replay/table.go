package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/experiment"
	"github.com/eagergc/eagergc/trace"
)

// writeTable prints a block for each workload and cost, a summary over the
// workloads, and a verdict.
func writeTable(w io.Writer, g *experiment.Grid) error {
	out := newPrinter(w)
	fmt.Fprintln(out, "Each cell: exposed pause, then collections as asked for by the policy + forced by a refusal;")
	fmt.Fprintln(out, "!n = n allocations failed even so. A limit such as 1.5x is a factor of the peak reachable bytes.")
	if g.Machine != nil {
		fmt.Fprintf(out, "Simulated on the machine: %s.\n", trace.Plain(g.Machine.About))
	}
	for i, load := range g.Workloads {
		fmt.Fprintf(out, "\n%s: %s allocations, %s waits, %s, peak reachable %s\n", load.Name,
			formatCount(load.Allocs), formatCount(load.Syncs), formatDuration(load.Span), formatBytes(load.PeakReachable))
		for j := range g.Costs {
			block(g, i, j).print(out)
		}
	}
	fmt.Fprintf(out, "\nTime lost, %s: (exposed pause + %v x collector time) / recorded time\n", meanOver(g), sim.CPUPrice)
	for j := range g.Costs {
		t := summary(g, j)
		if p := g.Rank(j).Best; p >= 0 {
			t[p+1][0] = best + t[p+1][0]
		}
		if out.width >= 96 {
			t = withBars(t, g, j)
		}
		t.print(out)
	}
	fmt.Fprintln(out)
	for j := range g.Costs {
		fmt.Fprintln(out, verdict(g, j))
		if text := savings(g, j); text != "" {
			fmt.Fprintln(out, text)
		}
	}
	return out.err
}

func meanOver(g *experiment.Grid) string {
	if len(g.Workloads) == 1 {
		return "on " + g.Workloads[0].Name
	}
	return fmt.Sprintf("geometric mean over %d workloads", len(g.Workloads))
}

// costName is the name of a cost in a picture or a sentence.
func costName(c sim.Cost) string {
	if g, ok := experiment.FixedCycle(c); ok {
		return "cycle " + g.String()
	}
	return "cycle of model"
}

// block is the table of one workload at one cost: a policy to a row, a limit
// to a column.
func block(g *experiment.Grid, workload, cost int) table {
	head := []string{g.CostName(cost)}
	for _, l := range g.Limits {
		head = append(head, l.String(), left)
	}
	t := table{head}
	for p, name := range g.Contenders {
		row := []string{name.String()}
		for l := range g.Limits {
			pause, cycles := cellText(g.At(experiment.Cell{Workload: workload, Limit: l, Cost: cost, Contender: p}))
			row = append(row, pause, left+cycles)
		}
		t = append(t, row)
	}
	return t
}

func cellText(o *experiment.Outcome) (pause, cycles string) {
	if errors.Is(o.Err, sim.ErrNoSchedule) {
		return "none", "fits"
	}
	if errors.Is(o.Err, sim.ErrTooLong) {
		return "too", "long"
	}
	cycles = fmt.Sprintf("%d+%d", o.Collections, o.RefusalCollections)
	if o.FailedAllocs > 0 {
		cycles += fmt.Sprintf(" !%d", o.FailedAllocs)
	}
	return formatDuration(o.ExposedPause), cycles
}

// summary is the table over all workloads at one cost: the time lost at each limit
// and over all that can be met, the longest pause, and failed allocations.
func summary(g *experiment.Grid, cost int) table {
	head := []string{g.CostName(cost)}
	for _, l := range g.Limits {
		head = append(head, l.String())
	}
	t := table{append(head, "all", "longest", "failed")}
	for p, name := range g.Contenders {
		row := []string{name.String()}
		for l := range g.Limits {
			row = append(row, lostText(g.Lost(cost, p, l)))
		}
		longest, failed := g.Worst(cost, p)
		t = append(t, append(row, lostText(g.Lost(cost, p, experiment.AllLimits)), formatDuration(longest), formatCount(failed)))
	}
	return t
}

// withBars adds a bar to each row where the screen has room: the time lost over all
// limits, beside the most.
func withBars(t table, g *experiment.Grid, cost int) table {
	const cells = 12
	most := 0.0
	for p := range g.Contenders {
		if lost := g.Lost(cost, p, experiment.AllLimits); lost > most {
			most = lost
		}
	}
	t[0] = append(t[0], left+"all")
	for p := range g.Contenders {
		lost := g.Lost(cost, p, experiment.AllLimits)
		n := 0
		if most > 0 && !math.IsNaN(lost) {
			n = int(math.Round(8 * cells * lost / most))
		}
		bar := strings.Repeat("█", n/8)
		if n%8 > 0 {
			bar += string([]rune("▏▎▍▌▋▊▉")[n%8-1])
		}
		t[p+1] = append(t[p+1], left+bar)
	}
	return t
}

func lostText(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return formatPercent(share)
}

// verdict says in a sentence which policy loses the least time at one cost,
// and how that stands to doing nothing, to the runner-up and to the optimum.
func verdict(g *experiment.Grid, cost int) string {
	r, name := g.Rank(cost), g.CostName(cost)
	if r.Best < 0 {
		return name + ": nothing to compare" + impossible(g)
	}
	lost := func(p int) string { return lostText(g.Lost(cost, p, experiment.AllLimits)) }
	text := fmt.Sprintf("%s: %s loses least, %s", name, g.Contenders[r.Best], lost(r.Best))
	if r.Second < 0 {
		text = fmt.Sprintf("%s: %s loses %s, and no other policy ran", name, g.Contenders[r.Best], lost(r.Best))
	}
	var others []string
	mention := func(p int) {
		if p >= 0 && p != r.Best {
			others = append(others, fmt.Sprintf("%s %s", g.Contenders[p], lost(p)))
		}
	}
	mention(r.Second)
	if r.Never != r.Second {
		mention(r.Never)
	}
	mention(r.Optimum)
	if len(others) > 0 {
		text += " (" + strings.Join(others, ", ") + ")"
	}
	if failed := g.Failed(cost, r.Best); failed > 0 {
		text += fmt.Sprintf(", but %s allocations fail under it", formatCount(failed))
	}
	return text + impossible(g) + "."
}

// savings say in a sentence what the best policy saves against never, in time and
// in memory; empty if there is nothing to say.
func savings(g *experiment.Grid, cost int) string {
	r := g.Rank(cost)
	if r.Best < 0 || r.Never < 0 || r.Best == r.Never {
		return ""
	}
	s, best := g.Saved(cost, r.Best, r.Never), g.Contenders[r.Best]
	if s.Time <= 0 {
		return ""
	}
	text := fmt.Sprintf("%s saves %s against never, over %s recorded in %s", best, formatDuration(s.Time), formatDuration(s.Recorded), plural(s.Runs, "run"))
	if s.Bytes > 0 {
		text += fmt.Sprintf(";\nat %s it loses less than never at %s, with %s less memory", s.With, s.Than, formatBytes(s.Bytes))
	}
	return text + "."
}

// impossible names the limits that some workload cannot meet, to end a sentence.
func impossible(g *experiment.Grid) (text string) {
	for l, limit := range g.Limits {
		for i, w := range g.Workloads {
			if !g.Possible(i, l) {
				text += fmt.Sprintf("; %s is below the %s that %s keeps reachable and does not count", limit, formatBytes(w.PeakReachable), w.Name)
				break
			}
		}
	}
	return text
}
