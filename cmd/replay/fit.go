package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/live"
)

func newFit() *cobra.Command {
	var out, heap string
	cmd := &cobra.Command{
		Use:   "fit RUN.arrows",
		Short: "Find the machine from a recording of a live run",
		Long: `fit reads the cycles of a live run: of replay live --record, or of an app that
records what its pool and its collector do, under any one policy. From what they
took it finds the machine, with which other policies can then be simulated. It says
how well the machine explains cycles that it was not fitted to.

What a recording does not show, calibrate measures: how long what is dropped still
counts, what an allocation takes, and how a cycle slows the program down.`,
		Example: `  replay live gpt2 --policy cudajl --ballast 16MiB --record run.arrows
  replay fit run.arrows -o machine.json && replay compare gpt2 --machine machine.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := loadTrace(args[0])
			if err != nil {
				return err
			}
			bytes, err := strconv.ParseInt(t.Meta["heap"], 10, 64)
			if heap != "" {
				bytes, err = parseSize("heap", heap)
			}
			if err != nil {
				return fmt.Errorf("%s does not say how large the Go heap was: give --heap", args[0])
			}
			m, fit, err := live.FitMachine(bytes, live.Observe(t))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			m.About = fmt.Sprintf("fitted to %s; Go heap %s", t.Name, formatBytes(bytes))
			return saveMachine(cmd, out, m, fit)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`file` to write; empty prints")
	f.StringVar(&heap, "heap", "", "`size` of the Go heap with pointers, if the recording does not say")
	return cmd
}
