package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

func newSweep() *cobra.Command {
	var (
		out string
		s   setting
	)
	cmd := &cobra.Command{
		Use:   "sweep [FILE...] --policies LIST",
		Short: "Run parameters, limits and costs by the thousand; find Pareto fronts and smallest limits",
		Long: `sweep replays every workload under every combination of policy, limit and
cycle. Lists may have braces, which stand for each of their values:

  {a|b|c}       these
  {0.5..0.9/5}  five values from 0.5 to 0.9, evenly spaced
  {1ms..1s*7}   seven values from 1ms to 1s, evenly spaced in their logarithm

It prints, for every workload, limit and cycle, the Pareto front of exposed pause
against collector time and against mean memory. Results go to the folder of -o
as they come, one JSON object to a line. A sweep that was interrupted and is run
again does not repeat the runs that are there.`,
		Example: `  replay sweep --policies 'never,cudajl,threshold:{0.5..0.95/10},periodic:{1ms..1s*10}' --limits '{1.1x..6x/20}'
  replay sweep my.arrows --policies cudajl --limits 1.5x --cycle '{0.1ms..1s*13}' -o results/cost`,
		RunE: func(cmd *cobra.Command, files []string) error {
			g, err := s.grid(files)
			if err != nil {
				return err
			}
			if err := sweep(cmd, g, out); err != nil {
				return err
			}
			return writeFronts(cmd.OutOrStdout(), g)
		},
	}
	s.manyPolicies(cmd, "")
	s.manyLimits(cmd, "{1.25x..4x*6}")
	s.manyCosts(cmd, "10ms")
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`folder` for the results; empty writes none")
	return cmd
}

// sweep runs the cells that the folder has no result of yet, and appends each
// result to its file as it comes.
func sweep(cmd *cobra.Command, g *experiment.Grid, out string) error {
	if out == "" {
		return runGrid(cmd, g)
	}
	path := filepath.Join(out, "sweep.jsonl")
	file, known, err := openSweep(out, path)
	if err != nil {
		return err
	}
	defer file.Close()
	bar := newProgress(cmd.ErrOrStderr(), "runs", g.Know(known))
	defer bar.done()
	results := json.NewEncoder(file)
	err = g.Run(cmd.Context(), func(o *experiment.Outcome) error {
		bar.add()
		if o.Err != nil {
			return nil // an optimum without a schedule
		}
		return results.Encode(o.Result)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "replay: %s has %d results\n", path, g.Len())
	return nil
}

// openSweep opens the results of a sweep to add to them, and reads those that are there. It
// removes a last line that was cut off.
func openSweep(out, path string) (*os.File, []sim.Result, error) {
	if _, err := openFolder(out); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(out) // no symbolic link in it leads out of it
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := root.OpenFile("sweep.jsonl", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	results, err := parseResults(path, bytes.NewReader(text[:whole]))
	if err == nil {
		err = f.Truncate(int64(whole))
	}
	if err == nil {
		_, err = f.Seek(int64(whole), io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, results, nil
}

// writeFronts prints the Pareto fronts of every workload, limit and cost.
func writeFronts(w io.Writer, g *experiment.Grid) error {
	out := newPrinter(w)
	for _, against := range []struct {
		name   string
		metric experiment.Metric
	}{{"gc_busy", experiment.Busy}, {"mean_live", experiment.MeanLive}} {
		fmt.Fprintf(out, "Pareto front of exposed pause against %s\n", against.name)
		for i, load := range g.Workloads {
			for l, limit := range g.Limits {
				for k := range g.Costs {
					fmt.Fprintf(out, "\n%s, limit %s, %s\n", load.Name, limit, g.CostName(k))
					t := table{{"policy", "pause", "collector", "mean live", "refusals"}}
					for _, r := range g.Front(i, l, k, experiment.Exposed, against.metric) {
						t = append(t, []string{r.Policy, chart.Duration(r.ExposedPause), chart.Duration(r.GCBusy), pressure.Bytes(r.MeanLive).String(), pressure.Count(r.RefusalCollections)})
					}
					t.print(out)
				}
			}
		}
		fmt.Fprintln(out)
	}
	return out.err
}
