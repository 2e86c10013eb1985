package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bench builds the clients and runs the plan: first a round of every job, then the next, so that
// what else the machine does meets all of them. What fails does not end the others.
func (s settings) bench() error {
	began, failed := time.Now(), []error(nil)
	jobs := s.plan()
	if s.built == "" {
		dir, err := os.MkdirTemp("", "clients")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.built = dir
		for _, j := range jobs {
			if _, err := os.Stat(filepath.Join(dir, j.program)); err == nil {
				continue
			}
			if err := build(filepath.Join(dir, j.program), j.program); err != nil {
				return err
			}
		}
	}
	var turns []turn
	for i, j := range jobs {
		for round := range j.rounds() {
			turns = append(turns, turn{i, j, round})
		}
	}
	slices.SortStableFunc(turns, func(x, y turn) int { return x.round + x.job.after - y.round - y.job.after })
	var all runs
	took := make([]time.Duration, len(jobs)) // a round, by job
	for _, t := range turns {
		if time.Since(began)+took[t.index] > s.length {
			continue
		}
		from := time.Now()
		for _, way := range t.job.ways(t.round) {
			r, err := measure(filepath.Join(s.built, t.job.program), way, t.job)
			if errors.Is(err, errNoWay) {
				continue
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s %s, way %s: %w", t.job.program, t.job.load, way, err))
				continue
			}
			r.Round = t.round
			all = append(all, r)
			fmt.Fprintf(os.Stderr, "%s %s %d %-16s %5.0f %5.0f MiB %6.2f s %5.2f s of CPU, %.0f cycles, p50 %.1f p99 %.1f ms\n",
				r.Client, r.Load, r.Round, r.Way, r.Mean, r.Peak, r.Seconds, r.CPU, r.Cycles, r.P50, r.P99)
		}
		took[t.index] = time.Since(from)
		if s.out == "" {
			continue
		}
		if err := all.write(s.out); err != nil { // the next round may be stopped
			return err
		}
	}
	return errors.Join(failed...)
}

// A turn is one round of a job.
type turn struct {
	index int
	job   job
	round int
}
