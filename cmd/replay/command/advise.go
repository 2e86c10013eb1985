package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// advisePolicies are those of compare that may be chosen.
const advisePolicies = "never,cudajl,opencl,growth,sqrt,v8step,dotnet,pacer"

func newAdvise() *cobra.Command {
	var (
		s            setting
		format, lost string
		heap, device = sizeFlag(64 << 20), sizeFlag(0)
		worlds       int
	)
	cmd := &cobra.Command{
		Use:   "advise FILE...",
		Short: "Say which policy and which limit a program needs, and what that saves",
		Long: `advise finds, for each recording, the policy that needs the smallest limit: it
refuses nothing there, and loses at most --lost of the recorded time. It says what
that policy costs, what the others would, how sure that is, and what to write into
the program. Where neither --cycle nor --machine says what a cycle takes, it is
measured here, beside a Go heap of --heap; let nothing else run meanwhile.` + words,
		Example: `  replay advise my.arrows
  replay advise my.arrows --cycle 5ms --lost 0.5%
  replay calibrate --heap 1GiB -o machine.json && replay advise my.arrows --machine machine.json
  replay advise gpt2 --cycle 10ms --format json | jq .limit_bytes`,
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
				stop := saying(cmd.ErrOrStderr(), "measuring what a cycle takes here")
				g.Costs[0], from, err = measureCycle(cmd.Context(), int64(heap))
				if stop(); err != nil {
					return err
				}
			}
			python, err := madeByPyTorch(files)
			if err != nil {
				return err
			}
			out := printerFor(cmd.OutOrStdout(), format)
			for i, w := range g.Workloads {
				q := experiment.Question{Workload: w, Policies: g.Contenders, World: g.World(0), Lost: bound, Most: int64(device), Variants: worlds}
				a, err := q.Advise(cmd.Context())
				switch {
				case err != nil && !errors.Is(err, experiment.ErrNoAdvice):
					return err
				case format == "json":
					if err := writeAdviceJSON(out, w.Name, a); err != nil {
						return err
					}
				case a == nil:
					however := "however large the limit"
					if device > 0 {
						however = "with the " + pressure.Bytes(device).String() + " of the device"
					}
					fmt.Fprintf(out, "%s: no policy refuses nothing and loses at most %s, %s (%s).\n", recording.Plain(w.Name), chart.Percent(bound), however, from)
				default:
					writeAdvice(out, w, a, sureText(a, g.Machine), from)
				}
				if format != "json" {
					if g.Machine == nil {
						if err := writeCosts(cmd.Context(), out, q, g.Costs[0]); err != nil {
							return err
						}
					}
					if python[i] {
						fmt.Fprintln(out, wrap(ofPyTorch)+"\n")
					}
				}
			}
			return out.err
		},
	}
	s.manyPolicies(cmd, advisePolicies)
	s.oneCost(cmd)
	s.limits.text = "1x" // of the grid; advice finds its own
	f := cmd.Flags()
	f.Var(&heap, "heap", "`size` of the program's Go heap with pointers, which decides what a cycle costs")
	f.Var(&device, "device", "`bytes` of the device, such as 80GiB: no larger limit is advised; 0: any limit")
	f.StringVar(&lost, "lost", "1%", "largest `share` of the recorded time that may be lost to pauses and cycles")
	f.IntVar(&worlds, "worlds", 10, "`number` of varied simulations in which the limit must do, too: predicted waits that are wrong, cycles 0.7 to 1.4 times as long")
	formatFlag(cmd, &format, ", an object to a line for each recording", "text", "json")
	return cmd
}

// advise asks for advice on one recording, among the policies of a grid.
func advise(ctx context.Context, g *experiment.Grid, workload, cost int, lost float64, variants int) (*experiment.Advice, error) {
	q := experiment.Question{
		Workload: g.Workloads[workload], Policies: g.Contenders, World: g.World(cost), Lost: lost, Variants: variants,
	}
	return q.Advise(ctx)
}

// ofPyTorch says what advice on a recording of PyTorch stands for.
const ofPyTorch = "This is a recording of PyTorch, which counts references and needs no such limit itself. The advice is for a program that allocates and drops the same under a tracing garbage collector, such as Go's."

// madeByPyTorch reports for each recording whether PyTorch made it.
func madeByPyTorch(files []string) ([]bool, error) {
	var all []bool
	for _, file := range named(files) {
		if slices.Contains(samples.All(), file) {
			all = append(all, slices.Contains(samples.Names(), file))
			continue
		}
		t, err := loadTrace(file)
		if err != nil {
			return nil, err
		}
		all = append(all, strings.Contains(strings.ToLower(t.Meta["source"]), "torch"))
	}
	return all, nil
}

// writeCosts answers the question for cycles a third and three times as long, too: what a
// cycle takes is what the advice hangs on most.
func writeCosts(ctx context.Context, w io.Writer, q experiment.Question, cost sim.Cost) error {
	world := q.World
	q.Variants = 0
	fmt.Fprintln(w, "  The smallest limit in one simulation, by how long a cycle takes:")
	t := table{{"cycle", left + "policy", "limit", "time lost", "of one core"}}
	for _, f := range []float64{1. / 3, 1, 3} {
		q.World = func(limit int64) sim.Config {
			cfg := world(limit)
			cfg.Cost = sim.Cost{Base: time.Duration(f * float64(cost.Of(0, 0)))}
			return cfg
		}
		row := []string{chart.Duration(time.Duration(f * float64(cost.Of(0, 0)))), left + "none", "none", "", ""}
		a, err := q.Advise(ctx)
		switch {
		case err == nil:
			row = []string{row[0], left + a.Policy, pressure.Bytes(a.Limit).String(), chart.Percent(a.Choice.Lost), chart.Percent(a.Choice.Core)}
		case !errors.Is(err, experiment.ErrNoAdvice):
			return err
		}
		if f == 1 {
			row[0] += " (taken here)"
		}
		t = append(t, row)
	}
	t.print(w)
	fmt.Fprintln(w)
	return nil
}

func measureCycle(ctx context.Context, heap int64) (sim.Cost, string, error) {
	m, fit, err := live.Calibrate(ctx, live.Calibration{Heap: heap, Memory: live.Memory{Direct: true}, Time: 2 * time.Second})
	if err != nil {
		return sim.Cost{}, "", err
	}
	cost := m.Cost()
	scatter := ""
	if fit.Half > muchScatter {
		scatter = ". They scatter, as they do where other work runs: ask again when the machine is quiet, or give --cycle"
	}
	return cost, fmt.Sprintf("cycle of %s, measured here (half of the cycles within %s of what is expected; %s/%s, %d cores, %s) beside %s of Go heap with pointers%s",
		chart.Duration(cost.Of(0, 0)), chart.Percent(fit.Half), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), pressure.Bytes(heap).String(), scatter), nil
}

// muchScatter is the largest error of the better half of the cycles, as a share, on a machine
// that is fit to measure on.
const muchScatter = 0.25

// writeAdviceJSON prints one object: the advice and the Go that follows it, or a
// policy of null where there is none.
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
	for _, o := range append([]experiment.Option{a.Choice}, a.Others...) {
		needs := "no limit"
		if o.Needs > 0 {
			needs = pressure.Bytes(o.Needs).String()
		}
		refused := pressure.Count(o.Refusals)
		if o.Failed > 0 {
			refused += fmt.Sprintf(" !%d", o.Failed)
		}
		t = append(t, []string{o.Policy, chart.Duration(o.Exposed), chart.Duration(o.P99), chart.Percent(o.Lost), refused, chart.Percent(o.Core), needs})
	}
	t.print(w)
	fmt.Fprintf(w, "\n%s\n\n", wrap(fmt.Sprintf("How sure: %s. Made for a %s.", sure, from)))
	fmt.Fprintf(w, "  %s\n  %s=%s  # the same policy without a change in the code\n\n", chart.Program(a), gc.PolicyVariable, a.Policy)
}

// givenCost says what a cycle costs that was not measured here.
func givenCost(g *experiment.Grid) string {
	d, fixed := experiment.FixedCycle(g.Costs[0])
	switch {
	case g.Machine != nil:
		return fmt.Sprintf("cycle of %s, and more for what it gives back, on the machine that was given (%s)", chart.Duration(d), recording.Plain(g.Machine.About))
	case fixed:
		return "cycle of " + d.String() + ", as given"
	}
	return "cycle of the model that was given"
}

// sureText says in how many worlds the advice holds.
func sureText(a *experiment.Advice, m *sim.Machine) string {
	if a.Variants == 0 {
		return "one simulation only, no other was tried"
	}
	differ := "waits foretold wrong by up to a half"
	if m != nil {
		differ = "the machine's noise from other seeds" + noiseText(m.Noise)
	}
	text := fmt.Sprintf("in %d other simulations (%s, cycles 0.7 to 1.4 times as long) it needs %s to %s",
		a.Variants, differ, pressure.Bytes(a.Least).String(), pressure.Bytes(a.Most).String())
	if a.Unmet > 0 {
		text += fmt.Sprintf("; in %d of them no limit does", a.Unmet)
	}
	return text
}

// noiseText says how far the cycles of a machine are from their expected length.
func noiseText(n sim.Noise) string {
	if len(n) < 2 {
		return ", of which it has none"
	}
	at := func(q float64) float64 { return n[int(q*float64(len(n)-1)+0.5)] }
	return fmt.Sprintf(": half of its cycles take %.2f to %.2f times what is expected, nine of ten at most %.2f times", at(0.25), at(0.75), at(0.9))
}
