package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

func newRun() *cobra.Command {
	var (
		format, why string
		at          time.Duration
		s           setting
	)
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Replay one recording under one policy, and say why it decided as it did",
		Long: `run replays a recording once and prints every metric, the percentiles of the
pauses and the latency of the program's steps. FILE is a native trace,
anything that replay import reads, or the name of a built-in workload.
--why lists decisions with their reasons instead: those that started a cycle
(--why=cycles), the last ones before a refusal (--why=refusals), or all of them;
with --at, the ones around a time of the run.

Policies are listed by replay policies.`,
		Example: `  replay run gpt2 --policy cudajl --limit 1.5x
  replay run my.arrows --policy threshold:0.9 --limit 8GiB --cycle 5ms --ladder 20ms
  replay run mlp --policy cudajl --why=cycles
  replay run mlp --why --at 0.5s`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			one, err := s.cell(args[0])
			if err != nil {
				return err
			}
			if why != "" {
				if err := oneOf("--why", why, whyNames); err != nil {
					return err
				}
			}
			around := cmd.Flags().Changed("at")
			if around && why == "" {
				return errors.New("--at is for --why: replay explain says what happened at a moment")
			}
			r, log, err := one.run(why != "")
			if err != nil {
				return err
			}
			out := printerFor(cmd.OutOrStdout(), format)
			switch {
			case why != "":
				some := whyOf(log, why)
				if around {
					some = near(some, at)
				}
				writeDecisions(out, some)
			case format == "json":
				if err := json.NewEncoder(out).Encode(r); err != nil {
					return err
				}
			default:
				writeRun(out, one.workload, &r, log)
			}
			return out.err
		},
	}
	s.onePolicy(cmd, "pacer")
	s.oneLimit(cmd)
	s.oneCost(cmd)
	f := cmd.Flags()
	f.StringVar(&why, "why", "", "list `decisions` with their reasons: "+orList(whyNames))
	f.Lookup("why").NoOptDefVal = "all"
	f.DurationVar(&at, "at", 0, "with --why: the decisions around this `time` of the run")
	formatFlag(cmd, &format, "", "text", "json")
	return cmd
}

// writeRun prints the metrics of a run, grouped.
func writeRun(w io.Writer, load *sim.Workload, r *sim.Result, log *sim.Log) {
	share := func(d time.Duration) string {
		return fmt.Sprintf("%s (%s of the recording)", formatDuration(d), formatPercent(float64(d)/float64(max(1, r.Span))))
	}
	table{
		{"workload", left + r.Trace},
		{"policy", left + r.Policy},
		{"limit", left + fmt.Sprintf("%s (%.4gx the peak reachable %s)", formatBytes(r.LimitBytes), r.LimitFactor, formatBytes(load.PeakReachable))},
		{"cost", left + fmt.Sprintf("cycle %s, ladder %s", formatDuration(r.Cycle), formatDuration(r.Ladder))},
		{"collections", left + fmt.Sprintf("%s asked for, %s forced by a refusal, %s of all freed under 1 %%", formatCount(r.Collections), formatCount(r.RefusalCollections), formatCount(log.Wasted()))},
		{"failed allocations", left + formatCount(r.FailedAllocs)},
		{"exposed pause", left + share(r.ExposedPause)},
		{"collector busy", left + share(r.GCBusy)},
		{"pauses", left + percentiles(log.Lengths())},
		{"metered steps", left + percentiles(load.Latencies(log, r.Elapsed))},
		{"live", left + fmt.Sprintf("peak %s, mean %s, of it garbage %s", formatBytes(r.PeakLive), formatBytes(int64(r.MeanLive)), formatBytes(int64(r.MeanGarbage)))},
		{"time", left + fmt.Sprintf("%s recorded, %s replayed", formatDuration(r.Span), formatDuration(r.Elapsed))},
	}.print(w)
}

// percentiles summarises sorted durations.
func percentiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	at := func(p float64) string { return formatDuration(trace.Percentile(sorted, p)) }
	return fmt.Sprintf("%s: p50 %s p90 %s p99 %s max %s", formatCount(len(sorted)), at(50), at(90), at(99), at(100))
}

// whyNames are the values of --why.
var whyNames = []string{"cycles", "refusals", "all"}

// whyOf returns some of the decisions of a log: all, those that started a cycle,
// or the last one before each refusal.
func whyOf(log *sim.Log, which string) (some []sim.Decided) {
	switch which {
	case "all":
		return log.Decisions
	case "cycles":
		return chosen(log)
	}
	for _, c := range log.Cycles {
		if c.Trigger != gc.TriggerRefusal {
			continue
		}
		if k := sort.Search(len(log.Decisions), func(i int) bool { return log.Decisions[i].Now > c.Start }); k > 0 {
			some = append(some, log.Decisions[k-1])
		}
	}
	return some
}

// near returns the decisions around a time of the run: five before it and five
// from it on.
func near(all []sim.Decided, at time.Duration) []sim.Decided {
	k := sort.Search(len(all), func(i int) bool { return all[i].Now >= at })
	return all[max(0, k-5):min(len(all), k+5)]
}

// writeDecisions lists questions and their answers, a line to each.
func writeDecisions(w io.Writer, all []sim.Decided) {
	fmt.Fprintf(w, "%12s  %-10s  %10s  %10s  %5s  %-7s  %s\n", "time", "at", "live", "request", "full", "action", "reason")
	for _, d := range all {
		ask := formatBytes(d.Request)
		if d.WillBlock {
			ask = formatDuration(d.Wait) + " wait"
		}
		fmt.Fprintf(w, "%11.6fs  %-10s  %10s  %10s  %4.0f%%  %-7s  %s\n",
			d.Now.Seconds(), d.At, formatBytes(d.Sample.Live), ask, 100*d.Sample.Pressure(), d.Action, d.Reason)
	}
}
