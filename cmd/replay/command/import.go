package command

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

func newImport() *cobra.Command {
	var (
		from, syncFile, name, out string
		recover                   bool
	)
	cmd := &cobra.Command{
		Use:   "import FILE -o OUT.arrows",
		Short: "Turn a recording of another tool into a native trace",
		Long: `import reads a recording and writes it as a native trace: an Arrow IPC stream that
pandas, polars, Julia, R and DuckDB read too. It detects the format by the content,
and unpacks gzip, zstd and xz. --sync adds the waits and annotations of a profile of
the same run, matched by the wall clock.

Formats:
` + listing(formats.All(), func(f formats.Format) (string, string) { return f.Name, f.About }),
		Example: `  replay import snapshot.pickle -o run.arrows
  replay import snapshot.pickle.gz --sync profile.json.gz -o run.arrows
  replay import killed.arrows.partial --recover -o run.arrows`,
		Args: files(1, 1, "one file of another tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("import: no output: say -o OUT.arrows")
			}
			if kind := filepath.Ext(out); kind != "" && !slices.Contains([]string{".arrows", ".arrow"}, kind) {
				return fmt.Errorf("-o %s: import writes a native trace: name it %s.arrows", out, strings.TrimSuffix(out, kind))
			}
			if err := canWrite(out, args[0], syncFile); err != nil {
				return err
			}
			// An import is one pass: garbage costs memory here, collections cost little.
			debug.SetGCPercent(50)
			bar := newProgress(cmd, "importing "+recording.Plain(args[0]))
			t, err := openTrace(args[0], from, bar.done)
			bar.stop()
			switch {
			case errors.Is(err, trace.ErrTruncated) && t != nil && recover:
				fmt.Fprintln(cmd.ErrOrStderr(), "replay: recovered:", err)
			case errors.Is(err, trace.ErrTruncated) && t != nil:
				return fmt.Errorf("%w (--recover reads the whole part)", err)
			case err != nil:
				return err
			}
			if syncFile != "" {
				s, err := openTrace(syncFile, "", nil)
				if err != nil {
					return err
				}
				if t, err = recording.Merge(t, s); err != nil {
					return fmt.Errorf("%s: --sync %s: %w: want the profile of the same run", args[0], syncFile, err)
				}
			}
			t.Name = name
			if name == "" {
				t.Name = recording.Stem(out)
			}
			if len(spacesOf(t)) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "replay:", experiment.ErrNoAllocations)
			}
			if _, err := openFolder(filepath.Dir(out)); err != nil {
				return err
			}
			if err := trace.WriteFile(out, t); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: wrote %s: %s events\n", recording.Plain(out), pressure.Count(len(t.Events)))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "`format` of FILE, instead of the detected one")
	f.BoolVar(&recover, "recover", false, "read the whole part of a native trace that was cut off")
	f.StringVar(&syncFile, "sync", "", "`file` with the waits and annotations of the same run: a Kineto profile")
	f.StringVar(&name, "name", "", "`name` of the trace in tables (default: OUT without its extension)")
	f.StringVarP(&out, "output", "o", "", "`file` to write")
	return cmd
}

// listing returns a line for each value: its name and its description.
func listing[T any](all []T, of func(T) (name, about string)) string {
	var b strings.Builder
	for _, v := range all {
		name, about := of(v)
		fmt.Fprintf(&b, "  %-10s %s\n", name, about)
	}
	return b.String()
}
