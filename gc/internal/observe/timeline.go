// Package observe has the observers of a collector: a timeline, the last decisions and cycles, a
// recorder, samples of allocation sites, the log. No decision depends on them.
package observe

import (
	"slices"
	"time"
)

const (
	timelineLen  = 512
	firstShift   = 24 // steps of 2^24 ns
	longestShift = 29
)

// A Timeline divides time into steps. A step is 17 ms long at first. Whenever 512 steps are full,
// each becomes twice as long, up to 0.54 s. From then on the oldest are forgotten. Make one with
// [NewTimeline]. One goroutine at a time uses it and its series.
type Timeline struct {
	shift  uint // steps of 2^shift ns
	series []interface{ coarsen() }
}

// NewTimeline returns a timeline without series.
func NewTimeline() *Timeline { return &Timeline{shift: firstShift} }

// Step returns the length of a step.
func (t *Timeline) Step() time.Duration { return 1 << t.shift }

// number returns the number of the step at a time, counted from 0. It makes steps longer if all are
// full.
func (t *Timeline) number(now time.Duration) int64 {
	for int64(now)>>t.shift >= timelineLen && t.shift < longestShift {
		t.shift++
		for _, s := range t.series {
			s.coarsen()
		}
	}
	return int64(now) >> t.shift
}

// A Series holds the values of the last steps. Values of one step are joined.
type Series[T any] struct {
	line  *Timeline
	join  func(to *T, from T, fresh bool) // fresh: to is the first value of a step
	steps []step[T]                       // oldest first; steps without a value are left out
}

type step[T any] struct {
	number int64
	value  T
}

// NewSeries adds a series to the timeline.
func NewSeries[T any](t *Timeline, join func(to *T, from T, fresh bool)) *Series[T] {
	s := &Series[T]{line: t, join: join}
	t.series = append(t.series, s)
	return s
}

// Add joins a value to the step at a time. A time before the last step counts for that step, because
// goroutines may call Add in another order than they have read the clock.
func (s *Series[T]) Add(now time.Duration, x T) {
	s.add(s.line.number(now), x)
	if len(s.steps) > timelineLen {
		s.steps = slices.Delete(s.steps, 0, 1)
	}
}

func (s *Series[T]) add(number int64, x T) {
	fresh := len(s.steps) == 0 || s.steps[len(s.steps)-1].number < number
	if fresh {
		s.steps = append(s.steps, step[T]{number: number})
	}
	s.join(&s.steps[len(s.steps)-1].value, x, fresh)
}

// All calls f with the start and the value of each of the last steps up to now, oldest first.
func (s *Series[T]) All(now time.Duration, f func(start time.Duration, value T)) {
	last := s.line.number(now)
	for _, x := range s.steps {
		if x.number > last-timelineLen {
			f(time.Duration(x.number<<s.line.shift), x.value)
		}
	}
}

// coarsen joins each two steps.
func (s *Series[T]) coarsen() {
	fine := s.steps
	s.steps = make([]step[T], 0, len(fine))
	for i := range fine {
		s.add(fine[i].number/2, fine[i].value)
	}
}

// Remove takes the series out of the timeline.
func (s *Series[T]) Remove() {
	s.line.series = slices.DeleteFunc(s.line.series, func(x interface{ coarsen() }) bool { return x == any(s) })
}

// A Ring keeps the last 64 values that were put into it.
type Ring[T any] struct {
	values [64]T
	n      int // ever put
}

// Put adds a value.
func (r *Ring[T]) Put(v T) { r.values[r.n%len(r.values)] = v; r.n++ }

// Newest returns the last value. There has to be one.
func (r *Ring[T]) Newest() *T { return &r.values[(r.n-1)%len(r.values)] }

// List returns the values, oldest first.
func (r *Ring[T]) List() []T {
	first := max(0, r.n-len(r.values)) % len(r.values)
	return slices.Concat(r.values[first:min(r.n, len(r.values))], r.values[:first])
}
