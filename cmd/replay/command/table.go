package command

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
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
			pressure.Count(load.Allocs), pressure.Count(load.Syncs), pressure.Duration(load.Span), pressure.Bytes(load.PeakReachable).String())
		for j := range g.Costs {
			table(chart.Block(g, i, j)).print(out)
		}
	}
	fmt.Fprintf(out, "\nTime lost, %s: (exposed pause + %v x collector time) / recorded time\n", chart.MeanOver(g), sim.CPUPrice)
	for j := range g.Costs {
		t := table(chart.Summary(g, j))
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
		fmt.Fprintln(out, chart.Verdict(g, j))
		if text := chart.Savings(g, j); text != "" {
			fmt.Fprintln(out, text)
		}
	}
	return out.err
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
