package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

func newInfo() *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE...",
		Short: "Say what is in a recording",
		Long: `info prints what a recording holds: events by kind, sizes and lifetimes of
objects, waits, peaks, and where it comes from. FILE is a native trace,
anything that replay import reads, or the name of a built-in workload.`,
		Example: `  replay info gpt2
  replay info snapshot.pickle.gz my.arrows`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			out := &printer{w: cmd.OutOrStdout()}
			for i, path := range files {
				t, err := loadTrace(path)
				if err != nil {
					return err
				}
				if i > 0 {
					fmt.Fprintln(out)
				}
				if err := describe(out, path, t); err != nil {
					return err
				}
			}
			return out.err
		},
	}
}

// describe prints one trace.
func describe(out io.Writer, path string, t *trace.Trace) error {
	w, err := sim.Compile(t, sim.SpaceOf(t))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := sizesOf(t)
	lives, err := percentiles(s.lives)
	if err != nil {
		return err
	}
	waits, err := percentiles(s.waits)
	if err != nil {
		return err
	}
	rows := grid{
		{t.Name, ""},
		{"events", left + s.kinds},
		{"space", left + w.Space.String()},
		{"time", left + formatDuration(w.Span)},
		{"allocated", left + fmt.Sprintf("%s in %s objects, %s dropped", formatBytes(w.AllocatedBytes), formatCount(w.Allocs), formatCount(w.Drops))},
		{"peak reachable", left + formatBytes(w.PeakReachable)},
		{"object lifetimes", left + lives},
		{"waits", left + fmt.Sprintf("%s in all; %s", formatDuration(w.Wait), waits)},
	}
	if !t.Start.IsZero() {
		rows = append(rows, []string{"start", left + t.Start.UTC().Format(time.RFC3339)})
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		rows = append(rows, []string{key, left + t.Meta[key]})
	}
	rows.print(out)
	return nil
}

type sizes struct {
	kinds string
	lives []time.Duration // of objects that were dropped
	waits []time.Duration
}

func sizesOf(t *trace.Trace) sizes {
	var s sizes
	var count [256]int
	born := make(map[uint64]int64)
	for _, e := range t.Events {
		count[e.Kind]++
		switch e.Kind {
		case trace.Alloc:
			born[e.ID] = e.Time
		case trace.Drop, trace.Free:
			if at, ok := born[e.ID]; ok {
				s.lives = append(s.lives, time.Duration(e.Time-at))
				delete(born, e.ID)
			}
		case trace.Sync:
			s.waits = append(s.waits, e.Duration)
		}
	}
	for k, n := range count {
		if n > 0 {
			if s.kinds != "" {
				s.kinds += ", "
			}
			s.kinds += formatCount(n) + " " + trace.Kind(k).String()
		}
	}
	return s
}
