package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/addressonly"
	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool/cuda"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func newLive() *cobra.Command {
	var (
		format, record string
		speed          float64
		head, measure  time.Duration
		compute        bool
		ballast        = sizeFlag(256 << 20)
		scale          int64
		mem            memory
		s              setting
	)
	cmd := &cobra.Command{
		Use:   "live FILE",
		Short: "Execute a recording on real memory with the real Go collector",
		Long: `live executes a recording. It allocates every object from a real pool, drops it by
forgetting its reference, and lets the policy run real cycles of Go's collector. Work of
the host and waits for the device take the recorded time. FILE is a native trace, a file
that replay import reads, or the name of a built-in recording.

With --machine it also simulates the run and prints both. Make that file with replay
calibrate: its --heap must equal the --ballast of the run, and --pool, --touch and
--cached must be the same. The speed of a machine varies, so live measures some cycles
before the run and adapts the simulation. With --record it writes the run to a native
trace, which replay calibrate reads.`,
		Example: `  replay live mlp --policy cudajl --limit 1.5x --ballast 256MiB
  replay calibrate --heap 256MiB -o machine.json && replay live mlp --ballast 256MiB --machine machine.json
  replay live gpt2 --speed 0 --touch 0 --format json`,
		Args: files(1, 1, "one recording"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !(speed >= 0) || head < 0 || measure < 0 { // NaN is not at least 0
				return errors.New("live: --speed, --for and --measure: want 0 or more")
			}
			if err := mem.check(); err != nil {
				return err
			}
			spec, err := policy.Parse(s.policies.text)
			if err != nil {
				return err
			}
			var g experiment.Grid
			if err := s.readLimits(&g); err != nil {
				return err
			}
			cfg := live.Config{Speed: speed, Policy: spec.New(), Compute: compute, Ballast: int64(ballast)}
			var m *sim.Machine
			if s.machine != "" {
				if m, err = loadMachine(s.machine); err != nil {
					return err
				}
			}
			if cfg.Elastic, err = s.elastic(m); err != nil {
				return err
			}
			if err := canWrite(record, args[0]); err != nil {
				return err
			}
			t, err := loadTrace(args[0])
			if err != nil {
				return err
			}
			if t, err = live.Scale(live.Head(t, head), scale); err != nil {
				return err
			}
			cfg.Space = sim.SpaceOf(t)
			w, err := sim.Compile(t, cfg.Space)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			cfg.Limit = g.Limits[0].Of(w)
			closing, err := mem.open()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closing()) }()
			var simulated *liveRun
			if m != nil {
				pace := 1.0
				if measure > 0 {
					if pace, err = live.Pace(cmd.Context(), live.Calibration{Heap: cfg.Ballast, Memory: mem.Memory, Time: measure}, m); err != nil {
						return err
					}
				}
				simulated = s.simulate(w, spec, m.Times(pace), &cfg, &mem)
				simulated.Pace = pace
			}
			cfg.Memory, cfg.Wait, cfg.Launch = mem.Memory, mem.wait, mem.launch
			cfg.Log = new(sim.Log)
			r, err := runLive(cmd, t, cfg, record)
			if err != nil {
				return err
			}
			if format == "json" {
				return writeLiveJSON(cmd.OutOrStdout(), &r, cfg.Log, simulated)
			}
			if err := writeLive(cmd.OutOrStdout(), w, &r, simulated, cfg.Log); err != nil {
				return err
			}
			writeCalls(cmd.OutOrStdout(), cuda.Calls())
			return nil
		},
	}
	s.onePolicy(cmd, gc.DefaultPolicy)
	s.oneLimit(cmd)
	s.world(cmd)
	f := cmd.Flags()
	mem.register(f)
	f.Float64Var(&speed, "speed", 1, "`factor`: 1 takes the recorded time, 2 half of it; 0 goes as fast as it can, without waits")
	f.BoolVar(&compute, "compute", false, "compute for as long as the host worked, which takes longer beside a cycle, instead of waiting that long")
	f.DurationVar(&head, "for", 0, "execute the first `time` of the recording; 0: all of it")
	f.DurationVar(&measure, "measure", time.Second, "with --machine: `time` to measure cycles before the run; 0: the machine is as fast as when it was calibrated")
	f.Var(&ballast, "ballast", "`size` of the Go heap of pointers that a cycle has to scan")
	f.Int64Var(&scale, "scale", 1, "divide all sizes by `n`")
	f.StringVar(&record, "record", "", "native trace `file` to write: what the pool and the collector did")
	formatFlag(cmd, &format, "", "text", "json")
	return cmd
}

// parseShare reads a share such as 1% or 0.01, from 0 to 1.
func parseShare(flag, text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v <= 1) {
		return 0, fmt.Errorf("--%s %s: want a share above 0, such as 1%% or 0.01", flag, text)
	}
	return v, nil
}

// runLive runs t, and records the run if a file is named. It reports panics of the policy.
func runLive(cmd *cobra.Command, t *trace.Trace, cfg live.Config, record string) (r live.Report, err error) {
	if record != "" {
		recorder, err := trace.Record(record, &trace.Trace{
			Name: recording.Stem(record),
			Meta: map[string]string{"app": "replay live " + t.Name, "policy": cfg.Policy.String(), live.MetaHeap: strconv.FormatInt(cfg.Ballast, 10)},
		}, trace.RecorderConfig{})
		if err != nil {
			return r, err
		}
		cfg.Recorder = recorder
		defer func() { err = errors.Join(err, recorder.Close()) }()
	}
	bar := newProgress(cmd, "running "+t.Name)
	cfg.Progress = bar.done
	r, err = live.Run(cmd.Context(), t, cfg)
	bar.stop()
	if err == nil && r.Stats.Failures > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "replay: %d panics in the policy or in the pool's release: the first one turned the policy off\n", r.Stats.Failures)
	}
	return r, err
}

// writeCalls prints the calls of a GPU's driver.
func writeCalls(w io.Writer, calls []cuda.CallCount) {
	if len(calls) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := table{{"calls of the driver", "number", "time"}}
	for _, c := range calls {
		rows = append(rows, []string{left + c.Name, pressure.Count(c.Calls), chart.Duration(c.Time)})
	}
	rows.print(w)
}

// A liveRun is the result of a live run, or of its simulation, with metrics that other results
// do not have.
type liveRun struct {
	sim.Result
	P99Pause time.Duration `json:"p99_pause_ns"`
	Reserved int64         `json:"reserved_bytes,omitempty"`
	Natural  int           `json:"natural_collections,omitempty"`
	Lost     time.Duration `json:"lost_ns,omitempty"`          // by work beside a cycle
	Alone    time.Duration `json:"lost_alone_ns,omitempty"`    // by work without a cycle
	Slowdown float64       `json:"slowdown,omitempty"`         // of work beside a cycle, as measured
	Learned  float64       `json:"learned_slowdown,omitempty"` // as the collector expected it at the end
	Pace     float64       `json:"pace,omitempty"`             // of a simulation: length of cycles now, over that at the calibration
}

func newLiveRun(r sim.Result, log *sim.Log) *liveRun {
	return &liveRun{Result: r, P99Pause: recording.Percentile(log.Lengths(), 99)}
}

// simulate runs w in the world of a machine. Without Compute, host work takes the recorded time
// also beside a cycle, so it is not slowed down here.
func (s *setting) simulate(w *sim.Workload, spec policy.Spec, m *sim.Machine, live *live.Config, mem *memory) *liveRun {
	m.Elastic, m.Waits = live.Elastic, strings.HasPrefix(mem.name, "cuda")
	if !live.Compute {
		m.Slowdown = 0
	}
	cfg := sim.Config{Limit: live.Limit, Machine: m, Seed: s.seed, Told: sim.Told{Learned: true}, Memory: addressonly.New(mem.kind(), live.Limit), Log: new(sim.Log)}
	run := newLiveRun(sim.Run(w, spec.New(), cfg), cfg.Log)
	run.Policy = "sim:" + run.Policy
	if n := run.Collections + run.RefusalCollections; n > 0 {
		run.Cycle = run.GCBusy / time.Duration(n) // as in a live run
	}
	return run
}

// writeLiveJSON prints one object on a line: the live run, and its simulation if there is one,
// whose policy begins with sim:.
func writeLiveJSON(w io.Writer, r *live.Report, log *sim.Log, simulated *liveRun) error {
	out := json.NewEncoder(w)
	run := newLiveRun(r.Result, log)
	run.Reserved, run.Natural = r.Reserved, r.Natural
	run.Lost, run.Alone, run.Slowdown, run.Learned = r.Work.LostBeside, r.Work.LostAlone, r.Work.Slowdown(), r.Stats.Slowdown
	if err := out.Encode(run); err != nil || simulated == nil {
		return err
	}
	return out.Encode(simulated)
}

// writeLive prints the metrics of a live run, beside those of the simulation.
func writeLive(w io.Writer, load *sim.Workload, r *live.Report, s *liveRun, log *sim.Log) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s under %s, limit %s (%.4gx the peak reachable %s)\n\n",
		r.Trace, r.Policy, pressure.Bytes(r.LimitBytes), r.LimitFactor, pressure.Bytes(load.PeakReachable))
	rows, runs := table{{"", "live"}}, []*sim.Result{&r.Result}
	if s != nil {
		rows[0], runs = append(rows[0], "simulated"), append(runs, &s.Result)
	}
	row := func(name string, of func(*sim.Result) string) {
		line := []string{left + name}
		for _, run := range runs {
			line = append(line, of(run))
		}
		rows = append(rows, line)
	}
	row("collections, asked for", func(r *sim.Result) string { return pressure.Count(r.Collections) })
	row("forced by a refusal", func(r *sim.Result) string { return pressure.Count(r.RefusalCollections) })
	rows = append(rows, []string{left + "run by Go itself", pressure.Count(r.Natural), ""}[:1+len(runs)])
	row("failed allocations", func(r *sim.Result) string { return pressure.Count(r.FailedAllocs) })
	row("a cycle takes", func(r *sim.Result) string { return chart.Duration(r.Cycle) })
	row("exposed pause", func(r *sim.Result) string { return chart.Duration(r.ExposedPause) })
	row("longest pause", func(r *sim.Result) string { return chart.Duration(r.MaxPause) })
	row("collector busy", func(r *sim.Result) string { return chart.Duration(r.GCBusy) })
	row("peak live", func(r *sim.Result) string { return pressure.Bytes(r.PeakLive).String() })
	row("mean live", func(r *sim.Result) string { return pressure.Bytes(r.MeanLive).String() })
	row("mean garbage", func(r *sim.Result) string { return pressure.Bytes(r.MeanGarbage).String() })
	row("time", func(r *sim.Result) string { return chart.Duration(r.Elapsed) })
	rows.print(out)
	fmt.Fprintf(out, "\npauses %s\nfell behind the recording by up to %s; the pool took up to %s\n",
		percentiles(log.Lengths()), chart.Duration(r.Late), pressure.Bytes(r.Reserved))
	if s != nil && s.Pace != 1 {
		fmt.Fprintf(out, "just before the run, cycles took %.2f times as long as when the machine was calibrated\n", s.Pace)
	}
	if work := r.Work; work != (live.Work{}) {
		fmt.Fprintf(out, "work took %s longer where a cycle was beside it, and %s where none was: a slowdown of %.2f (the collector learned %.2f)\n",
			chart.Duration(work.LostBeside), chart.Duration(work.LostAlone), r.Work.Slowdown(), r.Stats.Slowdown)
	}
	return out.Flush()
}
