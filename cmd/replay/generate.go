package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim/fleet"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/samples"
	"github.com/eagergc/eagergc/trace/synthetic"
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
		Long: `generate writes recordings that nobody has recorded: parts of those that are built
in and of synthetic programs, and mixtures of two, from another moment on, with other
sizes and at another pace. A seed and a number always give the same recording.`,
		Example: `  replay generate --jobs 1000 -o recordings && replay fleet recordings`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if jobs < 1 || g.Events < 10 {
				return fmt.Errorf("generate: want at least 1 job of at least 10 events")
			}
			var err error
			if g.Bases, err = fleetBases(); err != nil {
				return err
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

// fleetBases are the recordings that are built in, and two synthetic programs of each
// shape.
func fleetBases() (all []*trace.Trace, err error) {
	names := samples.All()
	for _, shape := range synthetic.Shapes() {
		names = append(names, shape+":1", shape+":2")
	}
	for _, name := range names {
		t, err := loadTrace(name)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
