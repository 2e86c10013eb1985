package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/sim/evaluate"
)

func newEvaluate() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "evaluate [FILE...]",
		Short: "Hold every policy against the reference and the optimum, over limits and costs",
		Long: `evaluate replays the workloads under every policy with its default parameters,
over limits from 1x to 6x and cycles from 0.1 ms to 1 s, and writes a report in
Markdown: exposed pause and collector time against cudajl, the objective against
the optimum, lower-bound overheads, metered latency, utilization, wasted and
missed collections, robustness, and parameters tuned on all workloads but one.`,
		Example: `  replay evaluate > report.md
  replay evaluate a.arrows b.arrows c.arrows -o results/mine`,
		RunE: func(cmd *cobra.Command, files []string) error {
			loads, err := loadWorkloads(files)
			if err != nil {
				return err
			}
			all, err := evaluate.Everyone()
			if err != nil {
				return err
			}
			r, err := evaluate.New(cmd.Context(), loads, all)
			if err != nil {
				return err
			}
			if out == "" {
				return r.Write(cmd.OutOrStdout())
			}
			dir, err := openFolder(out)
			if err != nil {
				return err
			}
			defer dir.close()
			if err := dir.write("report.md", r.Write); err != nil {
				return err
			}
			if err := dir.write("cells.json", func(w io.Writer) error { return writeDetails(w, r.Cells) }); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote report.md and cells.json to %s\n", out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`folder` for report.md and cells.json; empty prints the report")
	return cmd
}

// writeDetails writes the results behind a report, one JSON object to a line.
func writeDetails(w io.Writer, cells *evaluate.Cells) error {
	c := comparison{}
	for i := range cells.Details {
		c.outcomes = append(c.outcomes, sim.Outcome{Result: cells.Details[i].Result, Err: cells.Details[i].Err})
	}
	return writeJSON(w, &c)
}
