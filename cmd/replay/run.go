package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/montanaflynn/stats"
	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
)

func newRun() *cobra.Command {
	var (
		format string
		why    bool
		s      setting
	)
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Replay one recording under one policy, and say why it decided as it did",
		Long: `run replays a recording once and prints every metric, the percentiles of the
pauses and the latency of the program's steps. FILE is a native trace,
anything that replay import reads, or the name of a built-in workload.
--why lists every decision with its reason instead.

Policies are listed by replay policies.`,
		Example: `  replay run gpt2 --policy cudajl --limit 1.5x
  replay run my.arrows --policy threshold:0.9 --limit 8GiB --cycle 5ms --ladder 20ms
  replay run mlp --policy cudajl --why | grep block`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return fmt.Errorf("unknown format %q (want text or json)", format)
			}
			one, err := s.cell(args[0])
			if err != nil {
				return err
			}
			r, log, err := one.run(why)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			switch {
			case why:
				writeDecisions(out, log)
			case format == "json":
				if err := json.NewEncoder(out).Encode(r); err != nil {
					return err
				}
			default:
				if err := writeRun(out, one.workload, &r, log); err != nil {
					return err
				}
			}
			return out.Flush()
		},
	}
	s.onePolicy(cmd, "pacer")
	s.oneLimit(cmd)
	s.oneCost(cmd)
	f := cmd.Flags()
	f.BoolVar(&why, "why", false, "list every decision with its reason")
	f.StringVar(&format, "format", "text", "what to print: text or json")
	return cmd
}

// writeRun prints the metrics of a run, grouped.
func writeRun(w io.Writer, load *sim.Workload, r *sim.Result, log *sim.Log) error {
	var pauses []time.Duration
	for _, p := range log.Pauses {
		pauses = append(pauses, p.Length)
	}
	pauseText, err := percentiles(pauses)
	if err != nil {
		return err
	}
	steps, err := percentiles(load.Latencies(log, r.Elapsed))
	if err != nil {
		return err
	}
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
		{"pauses", left + pauseText},
		{"metered steps", left + steps},
		{"live", left + fmt.Sprintf("peak %s, mean %s, of it garbage %s", formatBytes(r.PeakLive), formatBytes(int64(r.MeanLive)), formatBytes(int64(r.MeanGarbage)))},
		{"time", left + fmt.Sprintf("%s recorded, %s replayed", formatDuration(r.Span), formatDuration(r.Elapsed))},
	}.print(w)
	return nil
}

// percentiles summarises durations, by nearest rank.
func percentiles(ds []time.Duration) (string, error) {
	if len(ds) == 0 {
		return "none", nil
	}
	text := formatCount(len(ds)) + ":"
	data := stats.LoadRawData(ds)
	for _, p := range []float64{50, 90, 99, 100} {
		v, err := stats.PercentileNearestRank(data, p)
		if err != nil {
			return "", fmt.Errorf("percentile %v: %w", p, err)
		}
		name := fmt.Sprintf("p%g", p)
		if p == 100 {
			name = "max"
		}
		text += fmt.Sprintf(" %s %s", name, formatDuration(time.Duration(v)))
	}
	return text, nil
}

// writeDecisions lists every question and its answer, a line to each.
func writeDecisions(w io.Writer, log *sim.Log) {
	fmt.Fprintf(w, "%14s  %-10s  %10s  %10s  %8s  %-7s  %s\n", "time", "at", "live", "request", "pressure", "action", "reason")
	for _, d := range log.Decisions {
		ask := formatBytes(d.Request)
		if d.WillBlock {
			ask = formatDuration(d.Wait) + " wait"
		}
		fmt.Fprintf(w, "%13.6fs  %-10s  %10s  %10s  %7.1f%%  %-7s  %s\n",
			d.Now.Seconds(), d.At, formatBytes(d.Sample.Live), ask, 100*d.Sample.Pressure(), d.Action, d.Reason)
	}
}
