package command

import (
	"encoding/json"
	"errors"
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
(--why=cycles), the last ones before a refusal (--why=refusals), or all of them.
--at lists the decisions before and after one moment, and the cycles around it. The
time is on the recording's clock, as replay info shows it: pauses of the replay do
not count.

Policies are listed by replay policies.` + words,
		Example: `  replay run gpt2 --policy cudajl --limit 1.5x
  replay run my.arrows --policy threshold:0.9 --limit 8GiB --cycle 5ms --ladder 20ms
  replay run mlp --policy cudajl --why=cycles
  replay run mlp --policy cudajl --at 0.5s`,
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
			w, cfg, around := g.Workloads[0], g.Config(experiment.Cell{}), cmd.Flags().Changed("at")
			switch {
			case around && why != "":
				return errors.New("--why lists decisions, --at those around one moment: give one of them")
			case around && (at < 0 || at > w.Span):
				return fmt.Errorf("--at %v: %s runs from 0 to %v", at, w.Name, w.Span)
			}
			log := &sim.Log{KeepDecisions: why != "" || around}
			cfg.Log = log
			r, err := g.Contenders[0].Run(w, cfg)
			if err != nil {
				return err
			}
			out := printerFor(cmd.OutOrStdout(), format)
			switch {
			case around:
				writeMoment(out, log, at)
			case why != "":
				writeDecisions(out, whyOf(log, why))
			case format == "json":
				if err := json.NewEncoder(out).Encode(r); err != nil {
					return err
				}
			default:
				writeRun(out, w, &r, log)
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
	f.DurationVar(&at, "at", 0, "list what was decided around this `time` of the recording")
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
		{"collections", left + fmt.Sprintf("%s asked for, %s forced by a refusal, %s of all freed under 1 %%", pressure.Count(r.Collections), pressure.Count(r.RefusalCollections), pressure.Count(log.Wasted()))},
		{"failed allocations", left + pressure.Count(r.FailedAllocs)},
		{"exposed pause", left + share(r.ExposedPause)},
		{"collector busy", left + share(r.GCBusy)},
		{"pauses", left + percentiles(log.Lengths())},
		{"metered steps", left + percentiles(load.Latencies(log, r.Elapsed))},
		{"live", left + fmt.Sprintf("peak %s, mean %s, of it garbage %s", pressure.Bytes(r.PeakLive).String(), pressure.Bytes(r.MeanLive).String(), pressure.Bytes(r.MeanGarbage).String())},
		{"time", left + fmt.Sprintf("%s recorded, %s replayed", chart.Duration(r.Span), chart.Duration(r.Elapsed))},
	}.print(w)
}

// percentiles summarises sorted durations.
func percentiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	at := func(p float64) string { return chart.Duration(recording.Percentile(sorted, p)) }
	return fmt.Sprintf("%s: p50 %s p90 %s p99 %s max %s", pressure.Count(len(sorted)), at(50), at(90), at(99), at(100))
}

var whyNames = []string{"cycles", "refusals", "all"}

// whyOf returns some of the decisions of a log: all, those that started a cycle,
// or the last one before each refusal.
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

// writeDecisions lists questions and their answers, a line to each.
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

// writeMoment lists the decisions and the cycles before and after a time of the recording.
func writeMoment(w io.Writer, log *sim.Log, at time.Duration) {
	all, cycles := log.Decisions, log.Cycles
	next := sort.Search(len(all), func(i int) bool { return all[i].Trace > at })
	around := all[max(0, next-1):min(next+1, len(all))]
	writeDecisions(w, around)
	if len(around) == 0 {
		return
	}
	saw := &around[0].Point
	fmt.Fprintf(w, "Before the first, since the last cycle: allocated %s, freed by the program %s; that cycle left %s live, and the next was expected to take %s.\n",
		pressure.Bytes(saw.Allocated), pressure.Bytes(saw.Freed), pressure.Bytes(saw.LiveAfter), chart.Duration(saw.Cost))
	then := sort.Search(len(cycles), func(i int) bool { return cycles[i].Start >= around[0].Now })
	for _, c := range cycles[max(0, then-1):min(then+1, len(cycles))] {
		fmt.Fprintf(w, "%11.6fs  a cycle, asked for by %v, took %s, held the program for %s, freed %s and left %s\n", c.Start.Seconds(), c.Trigger,
			chart.Duration(c.Duration), chart.Duration(c.Exposed), pressure.Bytes(c.Freed), pressure.Bytes(c.LiveAfter))
	}
}
