package command

import (
	"bufio"
	"fmt"
	"io"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// writeTable prints a block for each workload and cost, a summary over the workloads, and a
// verdict.
func writeTable(w io.Writer, g *experiment.Grid) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "Each cell: exposed pause (how long the program was held, beyond its own waits), then collections:")
	fmt.Fprintln(out, "asked for by the policy + forced by an allocation that did not fit; !n = n allocations failed even so.")
	fmt.Fprintln(out, "A limit such as 1.5x is a factor of the peak reachable bytes.")
	if g.Machine != nil {
		fmt.Fprintf(out, "Simulated on the machine: %s.\n", recording.Plain(g.Machine.About))
	}
	for i, load := range g.Workloads {
		fmt.Fprintf(out, "\n%s: %s allocations, %s waits, %s, peak reachable %s\n", load.Name,
			pressure.Count(load.Allocs), pressure.Count(load.Syncs), chart.Duration(load.Span), pressure.Bytes(load.PeakReachable).String())
		for j := range g.Costs {
			table(chart.Block(g, i, j)).print(out)
		}
	}
	fmt.Fprintf(out, "\n%s\n", chart.LostBy(g))
	for j := range g.Costs {
		table(chart.Summary(g, j)).print(out)
	}
	fmt.Fprintln(out)
	for j := range g.Costs {
		fmt.Fprintln(out, chart.Verdict(g, j))
		if text := chart.Savings(g, j); text != "" {
			fmt.Fprintln(out, text)
		}
	}
	return out.Flush()
}
