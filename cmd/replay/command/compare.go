package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/gc/policy"
)

// defaultLimits go from tight to roomy.
const defaultLimits = "1.25x,1.5x,2x,4x"

func newCompare() *cobra.Command {
	var (
		format, out string
		s           setting
	)
	cmd := &cobra.Command{
		Use:   "compare [FILE...]",
		Short: "Compare policies on recorded workloads: a table, plots and result files",
		Long: `compare replays every workload under every policy, limit and cost. It prints a table
and writes plots and machine-readable results to a folder. Without a FILE it replays
the built-in recordings of PyTorch and of Go programs with C libraries. A FILE is a
native trace, a file that replay import reads, or the name of a built-in recording.` + words + `

benchstat (golang.org/x/perf/cmd/benchstat) reads --format bench.

Policies (replay policies lists their parameters; all means all of them):
` + policyList(false) + `
Without --policies it replays
  ` + strings.Join(policy.SplitList(defaultPolicies), "\n  "),
		Example: `  replay compare
  replay compare --policies never,cudajl,threshold:0.9 --limits 1.1x,1.25x --cycle 5ms
  replay compare my.arrows --limits 8GiB,16GiB -o results/mine
  replay compare --format json -o '' | jq .exposed_pause_ns
  replay compare --format bench -o '' > new.bench && benchstat old.bench new.bench`,
		RunE: func(cmd *cobra.Command, files []string) error {
			g, err := s.grid(files)
			if err != nil {
				return err
			}
			if err := canWrite(out); err != nil {
				return err
			}
			if out != "" {
				g.Logs = func(c experiment.Cell) bool { // the cells that are drawn in detail
					at := chart.Typical(g, c.Workload)
					return c.Limit == at.Limit && c.Cost == at.Cost
				}
			}
			if err := runGrid(cmd, g); err != nil {
				return err
			}
			if err := writers[format](cmd.OutOrStdout(), g); err != nil {
				return err
			}
			if out == "" {
				return nil
			}
			return saveGrid(g, out, cmd.ErrOrStderr())
		},
	}
	s.manyPolicies(cmd, defaultPolicies)
	s.manyLimits(cmd, defaultLimits)
	s.manyCosts(cmd, "1ms,10ms")
	f := cmd.Flags()
	formatFlag(cmd, &format, "", "table", "json", "csv", "bench")
	f.StringVarP(&out, "output", "o", "replay-out", "`folder` for plots and results; empty writes none")
	return cmd
}

// runGrid runs a grid and shows its progress.
func runGrid(cmd *cobra.Command, g *experiment.Grid) error {
	bar := newProgress(cmd, "replaying "+chart.Counted(g.Len(), "run"))
	defer bar.stop()
	return g.Run(cmd.Context(), bar.done)
}
