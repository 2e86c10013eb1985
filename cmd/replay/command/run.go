package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func newRun() *cobra.Command {
	var (
		format, why string
		s           setting
	)
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Replay one recording under one policy, and say why it decided as it did",
		Long: `run replays a recording once and prints every metric, the percentiles of the pauses
and the latency of the program's steps. FILE is a native trace, a file that replay
import reads, or the name of a built-in recording.
--why lists decisions with their reasons instead: those that started a cycle
(--why=cycles), the last one before each refusal (--why=refusals), or all of them.

replay policies lists the policies.` + words,
		Example: `  replay run gpt2 --policy cudajl --limit 1.5x
  replay run my.arrows --policy threshold:0.9 --limit 8GiB --cycle 5ms --ladder 20ms
  replay run mlp --policy cudajl --why=cycles`,
		Args: files(1, 2, "one recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && why == "all" { // --why cycles is --why=cycles
				why = args[1]
			} else if len(args) == 2 {
				return files(1, 1, "one recording")(cmd, args)
			}
			g, err := s.grid(args[:1])
			if err != nil {
				return err
			}
			if why != "" {
				if err := oneOf("--why", why, whyNames); err != nil {
					return err
				}
			}
			w, cfg := g.Workloads[0], g.Config(experiment.Cell{})
			log := &sim.Log{KeepDecisions: why != ""}
			cfg.Log = log
			r, err := g.Contenders[0].Run(w, cfg)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			switch {
			case why != "":
				writeDecisions(out, whyOf(log, why))
			case format == "json":
				if err := json.NewEncoder(out).Encode(r); err != nil {
					return err
				}
			default:
				writeRun(out, w, &r, log)
				for _, note := range s.origins[0].notes(w) {
					fmt.Fprintln(out, "\n"+wrap(note))
				}
			}
			return out.Flush()
		},
	}
	s.onePolicy(cmd, "pacer")
	s.oneLimit(cmd)
	s.oneCost(cmd)
	f := cmd.Flags()
	f.StringVar(&why, "why", "", "list `decisions` with their reasons: "+orList(whyNames))
	f.Lookup("why").NoOptDefVal = "all"
	formatFlag(cmd, &format, "", "text", "json")
	return cmd
}

func writeRun(w io.Writer, load *sim.Workload, r *sim.Result, log *sim.Log) {
	share := func(d time.Duration) string {
		return fmt.Sprintf("%s (%s of the recording)", chart.Duration(d), chart.Percent(float64(d)/float64(max(1, r.Span))))
	}
	table{
		{"workload", left + r.Trace},
		{"policy", left + r.Policy},
		{"limit", left + fmt.Sprintf("%s (%.4gx the peak reachable %s)", pressure.Bytes(r.LimitBytes).String(), r.LimitFactor, pressure.Bytes(load.PeakReachable).String())},
		{"cost", left + fmt.Sprintf("cycle %s, ladder %s", chart.Duration(r.Cycle), chart.Duration(r.Ladder))},
		{"collections", left + fmt.Sprintf("%s asked for, %s forced by a refusal, %s of them freed less than 1%% of the live bytes", pressure.Count(r.Collections), pressure.Count(r.RefusalCollections), pressure.Count(log.Wasted()))},
		{"failed allocations", left + pressure.Count(r.FailedAllocs)},
		{"exposed pause", left + share(r.ExposedPause)},
		{"collector busy", left + share(r.GCBusy)},
		{"time lost", left + fmt.Sprintf("%s: %s", chart.Percent(float64(r.Objective())/float64(max(1, r.Span))), lostFormula(r.Slowed))},
		{"pauses", left + percentiles(log.Lengths())},
		{"latency of steps", left + percentiles(load.Latencies(log))},
		{"live", left + fmt.Sprintf("peak %s, mean %s, of it garbage %s", pressure.Bytes(r.PeakLive).String(), pressure.Bytes(r.MeanLive).String(), pressure.Bytes(r.MeanGarbage).String())},
		{"time", left + fmt.Sprintf("%s recorded, %s replayed", chart.Duration(r.Span), chart.Duration(r.Elapsed))},
	}.print(w)
}

// lostFormula returns the formula of the time lost.
func lostFormula(slowed time.Duration) string {
	beside := ""
	if slowed > 0 {
		beside = fmt.Sprintf(" + %s beside cycles", chart.Duration(slowed))
	}
	return fmt.Sprintf("(exposed pause%s + %v x collector busy) / recorded time", beside, sim.CPUPrice)
}

// percentiles summarizes sorted durations.
func percentiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	at := func(p float64) string { return chart.Duration(recording.Percentile(sorted, p)) }
	return fmt.Sprintf("%s: p50 %s p90 %s p99 %s max %s", pressure.Count(len(sorted)), at(50), at(90), at(99), at(100))
}

var whyNames = []string{"cycles", "refusals", "all"}

// whyOf returns decisions of a log: all, those that started a cycle, or the last one before each
// refusal.
func whyOf(log *sim.Log, which string) (some []sim.Decided) {
	switch which {
	case "all":
		return log.Decisions
	case "cycles":
		return slices.DeleteFunc(slices.Clone(log.Decisions), func(d sim.Decided) bool { return d.Action == policy.Skip })
	}
	for _, c := range log.Cycles {
		if c.Trigger != policy.TriggerRefusal {
			continue
		}
		if k := sort.Search(len(log.Decisions), func(i int) bool { return log.Decisions[i].Now > c.Start }); k > 0 {
			some = append(some, log.Decisions[k-1])
		}
	}
	return some
}

// writeDecisions prints questions and their answers, one on a line.
func writeDecisions(w io.Writer, all []sim.Decided) {
	fmt.Fprintf(w, "%12s  %-10s  %10s  %10s  %5s  %-7s  %s\n", "time", "at", "live", "request", "full", "action", "reason")
	for _, d := range all {
		ask := pressure.Bytes(d.Request).String()
		if d.WillBlock {
			ask = chart.Duration(d.Wait) + " wait"
		}
		fmt.Fprintf(w, "%11.6fs  %-10s  %10s  %10s  %4.0f%%  %-7s  %s\n",
			d.Now.Seconds(), d.At, pressure.Bytes(d.Sample.Live).String(), ask, 100*d.Sample.Pressure(), d.Action, d.Reason)
	}
}
