package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim/fleet"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/samples"
)

func newGenerate() *cobra.Command {
	var (
		out  string
		jobs int
		g    fleet.Generator
	)
	cmd := &cobra.Command{
		Use:   "generate -o DIR",
		Short: "Make up the recordings of a fleet, to try replay fleet with",
		Long: `generate writes recordings that nobody has recorded. Half of them are parts of the
recordings that are built in, from another moment on, with other sizes and at
another pace. The others are programs that do not exist (training, servers,
decoders, solvers, graphs, bursts), and mixtures of two. A seed and a number always give
the same recording.`,
		Example: `  replay generate --jobs 1000 -o recordings && replay fleet recordings`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if jobs < 1 || g.Events < 10 {
				return fmt.Errorf("generate: want at least 1 job of at least 10 events")
			}
			for _, name := range samples.All() {
				t, err := samples.Open(name)
				if err != nil {
					return err
				}
				g.Bases = append(g.Bases, t)
			}
			dir, err := openFolder(out)
			if err != nil {
				return err
			}
			bar := newProgress(cmd.ErrOrStderr(), "recordings", jobs)
			defer bar.done()
			for i := 0; i < jobs && cmd.Context().Err() == nil; i++ {
				if err := writeJob(dir, g.Trace(i)); err != nil {
					return err
				}
				bar.add()
			}
			dir.report(cmd.ErrOrStderr())
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "recordings", "`folder` for the recordings")
	f.IntVar(&jobs, "jobs", 100, "`number` of recordings")
	f.Uint64Var(&g.Seed, "seed", 1, "`number` from which all is drawn")
	f.IntVar(&g.Events, "events", 1000, "`number` of events in a recording, about")
	return cmd
}

func writeJob(dir *folder, t *trace.Trace) error {
	dir.files.Add(1)
	return arrowfile.WriteFile(filepath.Join(dir.path, t.Name+".arrows"), t)
}
