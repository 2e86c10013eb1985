package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/live"
)

func newCalibrate() *cobra.Command {
	var (
		out, heap string
		cal       live.Calibration
		mem       memory
	)
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure what a cycle of Go's collector costs on this machine",
		Long: `calibrate measures how long a program is held by a blocking cycle of Go's
collector. It varies the size of the Go heap with pointers, the number of tracked
objects, and the number of objects that the cycle frees; --busy goroutines keep
cores busy meanwhile. It writes the cost model that compare --cost and live --cost
read. It takes seconds. Let nothing else run meanwhile.`,
		Example: `  replay calibrate --heap 256MiB -o cost.json
  replay compare --cost cost.json
  replay calibrate --busy 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			bytes, err := parseSize("heap", heap)
			if err != nil {
				return err
			}
			if err := mem.check(); err != nil {
				return err
			}
			closing, err := mem.open()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closing()) }()
			cal.Memory = mem.Memory
			cost, measured, err := live.Calibrate(cmd.Context(), bytes, cal)
			if err != nil {
				return err
			}
			writeMeasurements(cmd.ErrOrStderr(), measured)
			text, err := json.MarshalIndent(cost, "", "  ")
			if err != nil {
				return err
			}
			text = append(text, '\n')
			if out != "" {
				return os.WriteFile(out, text, 0o644)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`file` to write; empty prints")
	f.StringVar(&heap, "heap", "256MiB", "`size` of the Go heap with pointers of the program to be modelled")
	f.IntVar(&cal.Busy, "busy", 0, "`n` goroutines that keep cores busy")
	f.IntVar(&cal.Repeat, "repeat", 11, "take the median of `n` cycles")
	f.IntVar(&cal.Objects, "objects", 100_000, "`n` objects to track, and a tenth of that to free")
	mem.register(f)
	return cmd
}

// writeMeasurements prints what was measured.
func writeMeasurements(w io.Writer, all []live.Measurement) {
	rows := table{{"Go heap", "tracked", "freed", "busy", "median", "least", "most"}}
	for _, m := range all {
		rows = append(rows, []string{
			formatBytes(m.Heap), formatCount(m.Tracked), formatCount(m.Freed), formatCount(m.Busy),
			formatDuration(m.Median), formatDuration(m.Least), formatDuration(m.Most),
		})
	}
	rows.print(w)
	fmt.Fprintln(w)
}
