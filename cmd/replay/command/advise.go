package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// advisePolicies are the policies that advise chooses from. A program that imports only the library
// knows all of them.
const advisePolicies = "never,cudajl,growth,sqrt,pacer"

func newAdvise() *cobra.Command {
	var (
		s            setting
		format, lost string
		heap         = sizeFlag(64 << 20)
		worlds       int
	)
	cmd := &cobra.Command{
		Use:   "advise FILE...",
		Short: "Say which policy and which limit a program needs, and what that saves",
		Long: `advise finds, for each recording, the policy that needs the smallest limit: at that
limit no allocation is refused, and the policy loses at most --lost of the recorded
time. It prints what that policy costs, what the others cost, how sure that is, and
the Go line that follows the advice.

If neither --cycle nor --machine gives the length of a cycle, advise measures it here,
beside a Go heap of --heap. Let nothing else run meanwhile. No limit is larger than
--device. Without --device the bound is the memory of this machine, or the memory that
the recorded program had, if that was more.

The advised policy and limit lose the same time in replay run and replay compare with
the same --cycle or --machine.` + words,
		Example: `  replay advise my.arrows
  replay advise my.arrows --cycle 5ms --lost 0.5%
  replay calibrate --heap 1GiB -o machine.json && replay advise my.arrows --machine machine.json
  replay advise gpt2 --cycle 10ms --device 140GiB --format json | jq .limit_bytes`,
		Args: files(1, many, "at least one recording"),
		RunE: func(cmd *cobra.Command, files []string) error {
			bound, err := parseShare("lost", lost)
			if err != nil {
				return err
			}
			if worlds < 0 {
				return errors.New("--worlds: want 0 or more")
			}
			g, err := s.grid(files)
			if err != nil {
				return err
			}
			from := givenCost(g)
			if f := cmd.Flags(); !f.Changed("cycle") && !f.Changed("machine") {
				if g.Costs[0], from, err = measureCycle(cmd, int64(heap)); err != nil {
					return err
				}
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			for i, w := range g.Workloads {
				if err := out.Flush(); err != nil { // of the recording before
					return err
				}
				q := s.question(g, i, 0)
				q.Lost, q.Variants = bound, worlds
				a, byCycle, err := adviseOn(cmd, q, format != "json" && g.Machine == nil)
				switch {
				case err != nil:
					return err
				case format == "json":
					if err := writeAdviceJSON(out, w.Name, a); err != nil {
						return err
					}
					continue
				case a == nil:
					fmt.Fprintf(out, "%s: no policy refuses nothing and loses at most %s%s (%s).\n", recording.Plain(w.Name), chart.Percent(bound), chart.Within(q.Most), from)
					if s.device == 0 {
						fmt.Fprintln(out, "This is the memory that is known: --device says if there is more.")
					}
				default:
					writeAdvice(out, w, a, sureText(a, g.Machine), from)
				}
				if byCycle != nil {
					fmt.Fprintln(out, "  The same, by the length of a cycle:")
					byCycle.print(out)
					fmt.Fprintln(out)
				}
				for _, note := range s.origins[i].notes(w) {
					fmt.Fprintln(out, wrap(note)+"\n")
				}
				if s.origins[i].torch {
					fmt.Fprintln(out, wrap(ofPyTorch)+"\n")
				}
			}
			return out.Flush()
		},
	}
	s.manyPolicies(cmd, advisePolicies)
	s.oneCost(cmd)
	s.limits.text = "1x" // of the grid; advice finds its own
	s.ofDevice(cmd)
	f := cmd.Flags()
	f.Lookup("cycle").DefValue = "measured here"
	f.Var(&heap, "heap", "`size` of the program's Go heap with pointers, which decides what a cycle costs")
	f.StringVar(&lost, "lost", "1%", "largest `share` of the recorded time that may be lost to pauses and cycles")
	f.IntVar(&worlds, "worlds", experiment.DefaultVariants, "`number` of other simulations in which the limit must be enough too: their predictions of waits are wrong, and their cycles take 0.7 to 1.4 times as long")
	formatFlag(cmd, &format, ", one object on a line for each recording", "text", "json")
	return cmd
}

// ofPyTorch says whom the advice on a recording of PyTorch is for.
const ofPyTorch = "This is a recording of PyTorch, which counts references and needs no such limit itself. The advice is for a program that allocates and drops the same under a tracing garbage collector, such as Go's."

// adviseOn answers a question, and shows its progress. The advice is nil if no policy meets the
// conditions. With byCycle it also answers the question for cycles a third and three times as
// long, since the advice depends most on their length.
func adviseOn(cmd *cobra.Command, q experiment.Question, byCycle bool) (*experiment.Advice, table, error) {
	bar := newProgress(cmd, "advising on "+recording.Plain(q.Workload.Name))
	defer bar.stop()
	parts := 1
	if byCycle {
		parts = 3
	}
	ask := func(q experiment.Question, part int) (*experiment.Advice, error) {
		q.Progress = bar.part(part, parts)
		a, err := q.Advise(cmd.Context())
		if errors.Is(err, experiment.ErrNoAdvice) {
			return nil, nil
		}
		return a, err
	}
	a, err := ask(q, 0)
	if err != nil || !byCycle {
		return a, nil, err
	}
	world := q.World
	cost := world(1).Cost
	cycle := cost.Base
	t := table{{"cycle", left + "policy", "limit", "time lost", "of one core"}}
	for k, f := range []float64{1. / 3, 1, 3} {
		if f == 1 {
			t = append(t, costRow(chart.Duration(cycle)+" (taken here)", a))
			continue
		}
		other := threeDigits(time.Duration(f * float64(cycle)))
		q.World = func(limit int64) sim.Config {
			cfg := world(limit)
			cfg.Cost = sim.Fixed(other)
			return cfg
		}
		b, err := ask(q, 1+k/2)
		if err != nil {
			return nil, nil, err
		}
		t = append(t, costRow(chart.Duration(other), b))
	}
	return a, t, nil
}

func costRow(name string, a *experiment.Advice) []string {
	if a == nil {
		return []string{name, left + "none", "none", "", ""}
	}
	return []string{name, left + a.Policy, pressure.Bytes(a.Limit).String(), chart.Percent(a.Choice.Lost), chart.Percent(a.Choice.Core)}
}

// threeDigits rounds a duration to the digits that [chart.Duration] prints, so that a reader who
// passes the printed duration as --cycle gets the same figures.
func threeDigits(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return (d + unit/2) / unit * unit
}

// measureCycle measures the length of a cycle here, and describes it.
func measureCycle(cmd *cobra.Command, heap int64) (sim.Cost, string, error) {
	bar := newProgress(cmd, "measuring the length of a cycle")
	m, fit, err := live.Calibrate(cmd.Context(), live.Calibration{Heap: heap, Memory: live.Memory{Direct: true}, Time: 2 * time.Second})
	bar.stop()
	if err != nil {
		return sim.Cost{}, "", err
	}
	cost, text := measuredCost(m, fit, heap)
	return cost, text, nil
}

// measuredCost returns and describes the cost of a cycle on a machine that was measured here. The
// cost has its length alone: a machine that also slows the program down is given with --machine.
func measuredCost(m *sim.Machine, fit live.Fit, heap int64) (sim.Cost, string) {
	cost := sim.Fixed(threeDigits(m.Cycle(0, 0, 0)))
	scatter := ""
	if fit.Half > muchScatter {
		scatter = ". They scatter, as they do beside other work: ask again when the machine is quiet, or give --cycle"
	}
	return cost, fmt.Sprintf("cycle of %s, measured here (half of the cycles within %s of the expected length; %s/%s, %d cores, %s) beside %s of Go heap with pointers%s",
		chart.Duration(cost.Base), chart.Percent(fit.Half), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), pressure.Bytes(heap).String(), scatter)
}

// muchScatter is the largest relative error of the better half of the cycles on a machine that is
// quiet enough to measure on.
const muchScatter = 0.25

// writeAdviceJSON prints one object: the advice and the Go line that follows it. If there is no
// advice, the policy is null.
func writeAdviceJSON(w io.Writer, name string, a *experiment.Advice) error {
	out := json.NewEncoder(w)
	if a == nil {
		return out.Encode(struct {
			Trace  string  `json:"trace"`
			Policy *string `json:"policy"`
		}{Trace: name})
	}
	return out.Encode(struct {
		*experiment.Advice
		Go string `json:"go"`
	}{a, chart.Program(a)})
}

func writeAdvice(w io.Writer, load *sim.Workload, a *experiment.Advice, sure, from string) {
	fmt.Fprintf(w, "%s: %s with a limit of %s\n\n%s\n\n", recording.Plain(load.Name), a.Policy, pressure.Bytes(a.Limit).String(), wrap(chart.AdviceText(a)))
	t := table{{"at this limit", "exposed pause", "p99 pause", "time lost", "refusals", "of one core", "as good from"}}
	options := append([]experiment.Option{a.Choice}, a.Others...)
	slows := slices.ContainsFunc(options, func(o experiment.Option) bool { return o.Slowed > 0 })
	if slows {
		t[0] = slices.Insert(t[0], 3, "slowed")
	}
	for _, o := range options {
		needs := "none"
		if o.Needs > 0 {
			needs = pressure.Bytes(o.Needs).String()
		}
		refused := pressure.Count(o.Refusals)
		if o.Failed > 0 {
			refused += fmt.Sprintf(" !%d", o.Failed)
		}
		row := []string{o.Policy, chart.Duration(o.Exposed), chart.Duration(o.P99), chart.Percent(o.Lost), refused, chart.Percent(o.Core), needs}
		if slows {
			row = slices.Insert(row, 3, chart.Duration(o.Slowed))
		}
		t = append(t, row)
	}
	t.print(w)
	fmt.Fprintf(w, "\n%s\n\n", wrap(fmt.Sprintf("How sure: %s. Made for a %s. No larger limit than %s was tried.", sure, from, pressure.Bytes(a.Memory))))
	fmt.Fprintf(w, "  %s\n  %s=%s  # the same policy without a change in the code\n\n", chart.Program(a), gc.PolicyVariable, a.Policy)
}

// givenCost describes the cost of a cycle that the flags give.
func givenCost(g *experiment.Grid) string {
	d := g.Costs[0].Base
	if g.Machine != nil {
		return fmt.Sprintf("cycle of %s, and more for the memory that it frees, on the machine that was given (%s)", chart.Duration(d), recording.Plain(g.Machine.About))
	}
	return "cycle of " + d.String() + ", as given"
}

// sureText says in how many simulations the advice holds.
func sureText(a *experiment.Advice, m *sim.Machine) string {
	if a.Variants == 0 {
		return "one simulation only, no other was tried"
	}
	differ := "predictions of waits wrong by up to a half"
	if m != nil {
		differ = "the machine's noise from other seeds" + noiseText(m.Noise)
	}
	text := fmt.Sprintf("in %d other simulations (%s, cycles 0.7 to 1.4 times as long) it needs %s to %s",
		a.Variants, differ, pressure.Bytes(a.Least).String(), pressure.Bytes(a.Most).String())
	if a.Unmet > 0 {
		text += fmt.Sprintf("; in %d of them no limit is enough", a.Unmet)
	}
	return text
}

// noiseText says how far the cycles of a machine are from their expected length.
func noiseText(n sim.Noise) string {
	if len(n) < 2 {
		return ", though it has no noise"
	}
	at := func(q float64) float64 { return n[int(q*float64(len(n)-1)+0.5)] }
	return fmt.Sprintf(": half of its cycles take %.2f to %.2f times the expected length, nine of ten at most %.2f times", at(0.25), at(0.75), at(0.9))
}
