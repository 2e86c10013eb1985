package command

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/live"
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/formats"
)

func newRecord() *cobra.Command {
	var (
		out, policy, limitText, sites string
		sample                        live.Sample
	)
	cmd := &cobra.Command{
		Use:   "record -o OUT.arrows",
		Short: "Run a sample program on the host pool and record it",
		Long: `record trains a small network on arrays of the host pool and frees none of them by
hand. It writes what the pool and its collector do to a native trace, which can be
replayed, compared, or read from pandas. A program of your own records itself in
the same way. The default policy collects at every wait, so that the time of each
drop is known to within one step.`,
		Example: `  replay record -o sample.arrows && replay info sample.arrows
  replay export sample.arrows --to pprof -o mem.pb.gz && go tool pprof -top mem.pb.gz
  replay record --policy cudajl --limit 32MiB -o sample.arrows
  replay compare sample.arrows --limits 1.5x`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return fmt.Errorf("record: no output: say -o OUT.arrows")
			}
			spec, err := gc.Parse(policy)
			if err != nil {
				return err
			}
			limit, err := pressure.ParseLimit(limitText)
			if err != nil {
				return err
			}
			rate, err := parseRate(sites)
			if err != nil {
				return err
			}
			file, err := arrowfile.Create(out, &trace.Trace{
				Name:  formats.Stem(out),
				Start: time.Now(),
				Meta:  map[string]string{"app": "replay record", "policy": spec.String(), "limits": "hard " + limit.String()},
			})
			if err != nil {
				return err
			}
			recorder := trace.NewRecorder(file, trace.RecorderConfig{})
			first, last, err := recordSample(cmd, sample, spec, limit, rate, recorder)
			if closed := recorder.Close(); err == nil {
				err = closed
			}
			if err != nil {
				return err
			}
			return writeRecorded(cmd.OutOrStdout(), out, sample, first, last, recorder.Lost())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`file` to write")
	f.StringVar(&policy, "policy", "always", "`policy`: see replay policies")
	f.StringVar(&limitText, "limit", "64MiB", "hard `limit` of the pool: 64MiB, 50%")
	f.StringVar(&sites, "sites", "1B", "note where one in so many `bytes` is allocated, for export --to pprof; 1B = every allocation, 0 = none")
	f.IntVar(&sample.Steps, "steps", 100, "train for `n` steps")
	f.IntVar(&sample.Batch, "batch", 256, "`n` rows in a step")
	f.IntVar(&sample.Width, "width", 128, "`n` hidden units")
	_ = cmd.RegisterFlagCompletionFunc("policy", completePolicies)
	return cmd
}

// parseRate reads a rate at which sites are sampled.
func parseRate(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	rate, err := parseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("sites: %w", err)
	}
	return rate, nil
}

// recordSample runs the sample program, and tells the recorder.
func recordSample(cmd *cobra.Command, sample live.Sample, spec gc.Spec, limit pressure.Limit, sites int64, r *trace.Recorder) (first, last float32, err error) {
	c, err := gc.New(gc.Config{Policy: spec.New(), Caps: gc.Caps{Cycles: 1}, Recorder: r})
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	p, err := pool.New(pool.Config{Limits: pressure.Limits{Hard: limit}, Collector: c, Trace: r, Sites: sites})
	if err != nil {
		return 0, 0, err
	}
	defer p.Close()
	return sample.Run(cmd.Context(), p)
}

func writeRecorded(w io.Writer, out string, s live.Sample, first, last float32, lost int64) error {
	t, err := arrowfile.ReadFile(out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %s events, of which %s were lost; %s steps took the loss from %.3g to %.3g\n",
		out, formatCount(len(t.Events)), formatCount(int(lost)), formatCount(s.Steps), first, last)
	return err
}
