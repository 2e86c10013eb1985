package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

func newCalibrate() *cobra.Command {
	var (
		out, like string
		scale     int64
		cal       = live.Calibration{Heap: 256 << 20}
		mem       memory
	)
	cmd := &cobra.Command{
		Use:   "calibrate [RUN.arrows]",
		Short: "Measure what cycles and allocations cost on this machine, or read it from a run",
		Long: `calibrate writes a machine file: the costs of cycles for a simulation. These are the
times of marking, of sweeping, of releasing memory and of the refusal ladder. They also
include the effect of the time since the last cycle, the slowdown of work beside a
cycle, how long dropped memory still counts, and the noise of all of these.

To measure them, calibrate executes programs as replay live does: made-up ones or, with
--like, your app's recording. Its cycles hold the program, run beside work or waits, or
follow refusals, 0.1 ms to 300 ms after one another, with few and many objects. Half of
the cycles test the result, and calibrate prints how well the machine explains them.

With RUN.arrows it executes nothing, and reads the costs from the recording of a live run:
one of replay live --record, or of an app that records its pool and its collector. Such a
recording has neither the cost of an allocation nor the time that dropped memory still
counts. These stay 0.

Give it the conditions of your app: the Go heap with pointers and the pool. Let nothing
run meanwhile that does not run beside the app.`,
		Example: `  replay calibrate --heap 256MiB -o machine.json
  replay compare --machine machine.json
  replay calibrate --heap 16MiB --time 1m
  replay live gpt2 --policy cudajl --ballast 16MiB --record run.arrows && replay calibrate run.arrows -o machine.json`,
		Args: files(0, 1, "at most one recording of a live run"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cal.Time <= 0 || scale < 1 {
				return errors.New("--time and --scale: want more than 0, such as --time 30s --scale 16")
			}
			if err := canWrite(out, append(args, like)...); err != nil {
				return err
			}
			if len(args) > 0 {
				if !cmd.Flags().Changed("heap") {
					cal.Heap = 0 // of the recording
				}
				return fitRun(cmd, args[0], cal.Heap, out)
			}
			if err := mem.check(); err != nil {
				return err
			}
			if like != "" {
				t, err := loadTrace(like)
				if err != nil {
					return err
				}
				if cal.Like, err = live.Scale(t, scale); err != nil {
					return err
				}
			}
			closing, err := mem.open()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closing()) }()
			cal.Memory = mem.Memory
			bar := newProgress(cmd, fmt.Sprintf("measuring cycles for %v, longer on a busy machine", cal.Time))
			m, fit, err := live.Calibrate(cmd.Context(), cal)
			bar.stop()
			if err != nil {
				return err
			}
			m.About = fmt.Sprintf("%s/%s, %d cores, %s; Go heap %s, pool %s, touch %s", runtime.GOOS, runtime.GOARCH,
				runtime.GOMAXPROCS(0), runtime.Version(), pressure.Bytes(cal.Heap).String(), mem.name, mem.touch)
			return saveMachine(cmd, out, m, fit)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`file` to write; empty prints")
	f.Var((*sizeFlag)(&cal.Heap), "heap", "`size` of the program's Go heap with pointers")
	f.DurationVar(&cal.Time, "time", 30*time.Second, "`time` to measure")
	f.StringVar(&like, "like", "", "`recording` of the app, to execute; empty: made-up programs")
	f.Int64Var(&scale, "scale", 1, "divide all sizes of that recording by `n`")
	mem.register(f)
	return cmd
}

// fitRun finds the machine of a recorded live run.
func fitRun(cmd *cobra.Command, path string, heap int64, out string) error {
	t, err := loadTrace(path)
	if err != nil {
		return err
	}
	m, fit, err := live.FitRecording(t, heap)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.About = fmt.Sprintf("fitted to %s; Go heap %s", t.Name, pressure.Bytes(m.Heap).String())
	return saveMachine(cmd, out, m, fit)
}

// saveMachine writes a machine to a file or prints it, and describes it.
func saveMachine(cmd *cobra.Command, out string, m *sim.Machine, fit live.Fit) error {
	writeMachine(cmd.ErrOrStderr(), m, fit)
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	write := func(w io.Writer) error { _, err := w.Write(text); return err }
	if out != "" {
		return writeFile(out, write)
	}
	return write(cmd.OutOrStdout())
}

func curveText(c sim.Curve) string {
	var points []string
	for _, p := range c {
		points = append(points, fmt.Sprintf("%s %.2f", chart.Duration(p.At), p.Factor))
	}
	return cmp.Or(strings.Join(points, ", "), "none")
}

// stallText describes the share and the length of stalls.
func stallText(s *sim.Stall) string {
	if s.Share == 0 {
		return "none"
	}
	return fmt.Sprintf("%s of cycles, half of them for more than %s", chart.Percent(s.Share), chart.Duration(time.Duration(s.Length[len(s.Length)/2])))
}

func writeMachine(w io.Writer, m *sim.Machine, fit live.Fit) {
	fmt.Fprintf(w, "%s\n\n", m.About)
	perObject := func(ns float64) string { return left + chart.Duration(time.Duration(ns)) + " for each object" }
	table{
		{"a cycle that frees nothing", left + chart.Duration(m.Cycle(0, 0, 0))},
		{"in which dropped memory still counts", left + chart.Duration(m.Start)},
		{"tracking", perObject(m.Mark.PerObject)},
		{"releasing", perObject(m.Settle.PerObject) + fmt.Sprintf(" and %s for each GiB", chart.Duration(time.Duration(m.Settle.PerGiB)))},
		{"sweeping, if the next cycle comes soon", left + chart.Duration(time.Duration(m.Sweep.Of(0, m.Heap)))},
		{"factor by the time since the last cycle", left + curveText(m.After)},
		{"stalling", left + stallText(&m.Stall)},
		{"the ladder, beyond its cycle", left + chart.Duration(m.Ladder)},
		{"beside the program's work", left + fmt.Sprintf("a cycle takes %.2f times as long, and the work %.2f times", max(1, m.Stretch), 1+m.Slowdown)},
		{"an allocation", left + chart.Duration(m.Alloc.Base)},
		{"mapping memory for one", left + chart.Duration(m.Map.Base) + fmt.Sprintf(" and %s for each chunk", chart.Duration(time.Duration(m.Map.PerObject)))},
	}.print(w)
	fmt.Fprintf(w, "\nHow sure: %s.\n", fit)
}
