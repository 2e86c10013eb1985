package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

type settings struct {
	plan
	out, only, built string
	rounds           int
}

// bench builds the clients and runs them: first every way of every client, then all of it again, so
// that what else the machine does meets all of them. What fails does not end the others.
func (s settings) bench() error {
	if s.built == "" {
		dir, err := os.MkdirTemp("", "clients")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.built = dir
		for _, j := range s.jobs {
			if !contains(s.only, filepath.Base(j.program)) {
				continue
			}
			if err := build(filepath.Join(dir, filepath.Base(j.program)), j.program); err != nil {
				return fmt.Errorf("%s: %w", j.program, err)
			}
		}
	}
	var all runs
	var failed []error
	for round := range s.rounds {
		for _, j := range s.jobs {
			if !contains(s.only, filepath.Base(j.program)) {
				continue
			}
			for way := range strings.SplitSeq(s.ways, ",") {
				r, err := measure(filepath.Join(s.built, filepath.Base(j.program)), way, j)
				if errors.Is(err, errNoWay) {
					continue
				}
				if err != nil {
					failed = append(failed, fmt.Errorf("%s, way %s: %w", j.program, way, err))
					continue
				}
				r.Round = round
				all = append(all, r)
				fmt.Fprintf(os.Stderr, "%s %d %-16s %5.0f %5.0f MiB %6.2f s %5.2f s of CPU, %.0f cycles, %.0f of them forced, p50 %.1f p99 %.1f ms\n",
					r.Client, r.Round, r.Way, r.Mean, r.Peak, r.Seconds, r.CPU, r.Cycles, r.Forced, r.P50, r.P99)
			}
			if s.out == "" {
				continue
			}
			if err := all.write(s.out, s.file); err != nil { // the next client may be stopped
				return err
			}
		}
	}
	return errors.Join(failed...)
}
