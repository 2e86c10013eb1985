package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// bench builds the clients and runs the plan: first a round of every job, then the next.
// Each lane takes the next round of any job, and has two cores.
func (s settings) bench() error {
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
			if err := build(filepath.Join(dir, j.program), j.program, s.tags); err != nil {
				return err
			}
		}
	}
	b := &board{settings: s, begin: time.Now(), took: make([]time.Duration, len(jobs))}
	for i, j := range jobs {
		for round := range j.rounds() {
			b.next = append(b.next, turn{i, j, round})
		}
	}
	slices.SortStableFunc(b.next, func(x, y turn) int { return x.round + x.job.after - y.round - y.job.after })
	var all sync.WaitGroup
	for lane := range s.lanes {
		all.Go(func() { b.work(lane) })
	}
	all.Wait()
	return errors.Join(b.failures...)
}

// A turn is one round of a job.
type turn struct {
	index int
	job   job
	round int
}

// A board is where lanes take their turns and leave what they have measured.
type board struct {
	settings
	begin time.Time

	mu       sync.Mutex
	next     []turn
	took     []time.Duration // of a round, by job
	all      runs
	failures []error
}

// take returns the next turn for which there is time.
func (b *board) take() (t turn, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.next) > 0 {
		t, b.next = b.next[0], b.next[1:]
		if time.Since(b.begin)+b.took[t.index] < b.length {
			return t, true
		}
	}
	return t, false
}

func (b *board) work(lane int) {
	for {
		t, ok := b.take()
		if !ok {
			return
		}
		begin := time.Now()
		for _, way := range t.job.ways(t.round) {
			if time.Since(b.begin) > b.length {
				break
			}
			r, err := measure(filepath.Join(b.built, t.job.program), way, t.job, b.cores(lane))
			if errors.Is(err, errNoWay) {
				continue
			}
			if err == nil {
				r.Round = t.round
			}
			b.put(t.job, way, r, err)
		}
		b.mu.Lock()
		b.took[t.index] = time.Since(begin)
		b.mu.Unlock()
	}
}

// cores are those of a lane; nil is all, where there is one lane only.
func (b *board) cores(lane int) []int {
	if b.lanes == 1 {
		return nil
	}
	return []int{2 * lane, 2*lane + 1}
}

// put keeps a run, and writes all of them: the next may be stopped. What fails does not
// end the others.
func (b *board) put(j job, way string, r run, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		fmt.Fprintf(os.Stderr, "%s %s %d %-16s %5.0f %5.0f MiB %6.2f s %5.2f s of CPU, %.0f cycles, p50 %.1f p99 %.1f ms\n",
			r.Client, r.Load, r.Round, r.Way, r.Mean, r.Peak, r.Seconds, r.CPU, r.Cycles, r.P50, r.P99)
		b.all = append(b.all, r)
		if b.out != "" {
			err = b.all.write(b.out)
		}
	}
	if err != nil {
		b.failures = append(b.failures, fmt.Errorf("%s %s, way %s: %w", j.name(), j.load, way, err))
	}
}
