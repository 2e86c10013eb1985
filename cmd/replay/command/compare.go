package command

import (
	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/chart"
	"github.com/eagergc/eagergc/cmd/replay/experiment"
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
		Long: `compare replays every workload under every policy, limit and cost, prints a
table and writes plots and machine-readable results to a folder. Without a
FILE it takes the workloads that are built in. A FILE is a native trace,
anything that replay import reads, or the name of a built-in workload.` + words + `

--format bench is read by benchstat (golang.org/x/perf/cmd/benchstat).

Policies (replay policies tells their parameters; all is all of them):
` + policyList(false),
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
				g.Logs = func(c experiment.Cell) bool { // those that are drawn in detail
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

// runGrid runs a grid and shows how far it is.
func runGrid(cmd *cobra.Command, g *experiment.Grid) error {
	bar := newProgress(cmd.ErrOrStderr(), "runs", g.Len())
	defer bar.done()
	return g.Run(cmd.Context(), func(*experiment.Outcome) error { bar.add(); return nil })
}
