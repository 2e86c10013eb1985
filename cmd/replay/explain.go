package main

import (
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
)

func newExplain() *cobra.Command {
	var (
		at time.Duration
		s  setting
	)
	cmd := &cobra.Command{
		Use:   "explain FILE --policy P --at TIME",
		Short: "Say why a policy did or did not collect at a moment of a recording",
		Long: `explain replays a workload under a policy. For one moment of the recording, it shows
when the policy was last asked, what it saw, what it answered and why, and the
cycles before and after. TIME is on the recording's clock, as replay info shows
it: pauses of the replay do not count.`,
		Example:           `  replay explain my.arrows --policy cudajl --limit 1.5x --cycle 10ms --at 2.5s`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, files []string) error {
			one, err := s.cell(files[0])
			if err != nil {
				return err
			}
			if w := one.workload; at < 0 || at > w.Span {
				return fmt.Errorf("--at %v: %s runs from 0 to %v", at, w.Name, w.Span)
			}
			_, log, err := one.run(true)
			if err != nil {
				return err
			}
			return explain(cmd.OutOrStdout(), one.contender, log, at)
		},
	}
	s.onePolicy(cmd, "")
	s.oneLimit(cmd)
	s.oneCost(cmd)
	cmd.Flags().DurationVar(&at, "at", 0, "`time` on the recording's clock")
	_ = cmd.MarkFlagRequired("at")
	return cmd
}

// explain writes the decision in force at a time.
func explain(w io.Writer, c sim.Contender, log *sim.Log, at time.Duration) error {
	out := newPrinter(w)
	ds := log.Decisions
	next := sort.Search(len(ds), func(i int) bool { return ds[i].Trace > at })
	if next == 0 {
		fmt.Fprintf(out, "%s had not been asked by %v.\n", c, at)
	} else {
		d := &ds[next-1]
		fmt.Fprintf(out, "%s was last asked at %v, before %s, and answered %v: %s.\n", c, d.Trace, where(d), d.Action, d.Reason)
		explainPoint(out, &d.Point)
		if d.Wake > 0 {
			fmt.Fprintf(out, "  wake       %s: no allocation asks before live + request reaches this, or a cycle ends\n", wakeText(d.Wake))
		}
	}
	if next < len(ds) {
		d := &ds[next]
		fmt.Fprintf(out, "It was asked again at %v, before %s, and answered %v: %s.\n", d.Trace, where(d), d.Action, d.Reason)
	} else {
		fmt.Fprintln(out, "It was not asked again.")
	}
	explainCycles(out, log, ds, next)
	return out.err
}

func where(d *sim.Decided) string {
	if d.At == gc.Sync {
		return fmt.Sprintf("a wait of %s", formatDuration(d.Wait))
	}
	return fmt.Sprintf("an allocation of %s", formatBytes(d.Request))
}

func wakeText(wake int64) string {
	if wake >= 1<<61 {
		return "never"
	}
	return formatBytes(wake)
}

func explainPoint(w io.Writer, p *gc.Point) {
	fmt.Fprintf(w, "  now        %v on the clock of the run\n", p.Now)
	fmt.Fprintf(w, "  live       %s of %s: pressure %s\n", formatBytes(p.Sample.Live), formatBytes(p.Sample.Limit), formatPercent(p.Sample.Pressure()))
	fmt.Fprintf(w, "  since the last cycle: allocated %s, freed by the program %s; live after it %s\n", formatBytes(p.Allocated), formatBytes(p.Freed), formatBytes(p.LiveAfter))
	fmt.Fprintf(w, "  a cycle    would cost %s; %d so far", formatDuration(p.Cost), p.Cycles)
	if p.Running {
		fmt.Fprint(w, ", one under way")
	}
	fmt.Fprintln(w)
}

// explainCycles writes the cycles around decision next: the run's clock tells
// which they are.
func explainCycles(w io.Writer, log *sim.Log, ds []sim.Decided, next int) {
	now := time.Duration(0)
	if next > 0 {
		now = ds[next-1].Now
	}
	after := sort.Search(len(log.Cycles), func(i int) bool { return log.Cycles[i].Start >= now })
	show := func(name string, i int) {
		if i < 0 || i >= len(log.Cycles) {
			fmt.Fprintf(w, "  %s none\n", name)
			return
		}
		c := &log.Cycles[i]
		fmt.Fprintf(w, "  %s at %v, asked for by %v: took %s, exposed %s, freed %s, left %s\n", name, c.Start, c.Trigger,
			formatDuration(c.Duration), formatDuration(c.Exposed), formatBytes(c.Freed), formatBytes(c.LiveAfter))
	}
	fmt.Fprintln(w, "Cycles, on the clock of the run:")
	show("before", after-1)
	show("then  ", after)
}
