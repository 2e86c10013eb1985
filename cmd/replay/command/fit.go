package command

import (
	"fmt"

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

How a cycle slows the program down is what the app's collector saw of it, which
is no more than it is. What a recording does not show, calibrate measures: how long what is
dropped still counts, and what an allocation takes.`,
		Example: `  replay live gpt2 --policy cudajl --ballast 16MiB --record run.arrows
  replay fit run.arrows -o machine.json && replay compare gpt2 --machine machine.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := loadTrace(args[0])
			if err != nil {
				return err
			}
			var bytes int64
			if heap != "" {
				if bytes, err = parseSize("heap", heap); err != nil {
					return err
				}
			}
			m, fit, err := live.FitRecording(t, bytes)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			m.About = fmt.Sprintf("fitted to %s; Go heap %s", t.Name, formatBytes(m.Heap))
			return saveMachine(cmd, out, m, fit)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`file` to write; empty prints")
	f.StringVar(&heap, "heap", "", "`size` of the Go heap with pointers, if the recording does not say")
	return cmd
}
