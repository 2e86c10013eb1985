package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/pprof"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

type exporter struct {
	name, about string
	write       func(w io.Writer, t *trace.Trace, at time.Duration) error
}

var exporters = []exporter{
	{"pprof", "live bytes by allocation site, at their peak or --at a time, for go tool pprof", pprof.Write},
	{"arrow", "a native trace without compression, for readers of Arrow without zstd, such as npm's apache-arrow", writeUnpacked},
	{"text", "one line for each event, which replay import reads", func(w io.Writer, t *trace.Trace, _ time.Duration) error { return recording.WriteText(w, t) }},
}

// writeUnpacked writes a native trace without compression.
func writeUnpacked(w io.Writer, t *trace.Trace, _ time.Duration) error {
	out, err := trace.NewWriter(w, t)
	if err != nil {
		return err
	}
	out.Unpacked()
	_, err = out.WriteBatch(t.Events, t.Labels)
	return errors.Join(err, out.Close())
}

func newExport() *cobra.Command {
	var (
		to, out string
		at      time.Duration // of a profile
	)
	cmd := &cobra.Command{
		Use:   "export FILE --to FORMAT -o OUT",
		Short: "Write a recording in the format of another tool",
		Long:  "export writes a recording for other tools. FILE is a file that replay import reads,\nor the name of a built-in recording.\n\nFormats:\n" + listing(exporters, func(e exporter) (string, string) { return e.name, e.about }),
		Example: `  replay export run.arrows --to pprof -o mem.pb.gz && go tool pprof -top mem.pb.gz
  replay export gpt2 --to text -o gpt2.txt`,
		Args: files(1, 1, "one recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.IndexFunc(exporters, func(e exporter) bool { return e.name == to })
			if i < 0 {
				return oneOf("format", to, exportNames())
			}
			if out == "" {
				return errors.New("export: no output: say -o OUT")
			}
			if err := canWrite(out, args...); err != nil {
				return err
			}
			t, err := loadValid(args[0])
			if err != nil {
				return err
			}
			if err := writeFile(out, func(w io.Writer) error { return exporters[i].write(w, t, at) }); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote %s: %s events\n", recording.Plain(out), pressure.Count(len(t.Events)))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "`format`: "+strings.Join(exportNames(), ", "))
	f.DurationVar(&at, "at", pprof.AtPeak, "`time` of a pprof profile (default: the peak)")
	f.Lookup("at").DefValue = "0s" // the help leaves it out
	f.StringVarP(&out, "output", "o", "", "`file` to write")
	return cmd
}

func exportNames() []string {
	var names []string
	for _, e := range exporters {
		names = append(names, e.name)
	}
	return names
}
