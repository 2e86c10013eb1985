// Package observe has the observers of a collector: a timeline, the last decisions and cycles, a
// recorder, samples of allocation sites, the log. No decision depends on them.
package observe

import (
	"slices"
	"time"
)

// Step is the length of a step of a [Series], about half a second.
const Step = 1 << 29 * time.Nanosecond

const steps = 512 // that a series remembers, 4.6 minutes

// A Series holds the values of the last steps of time. Values of one step are joined. Make one with
// [NewSeries]. One goroutine at a time uses it.
type Series[T any] struct {
	join func(to *T, from T, fresh bool) // fresh: to is the first value of a step
	last []step[T]                       // oldest first; steps without a value are left out
}

type step[T any] struct {
	number int64
	value  T
}

// NewSeries returns a series without values.
func NewSeries[T any](join func(to *T, from T, fresh bool)) *Series[T] {
	return &Series[T]{join: join}
}

// Add joins a value to the step at a time. A time before the last step counts for that step, because
// goroutines may call Add in another order than they have read the clock.
func (s *Series[T]) Add(now time.Duration, x T) {
	number := int64(now / Step)
	fresh := len(s.last) == 0 || s.last[len(s.last)-1].number < number
	if fresh {
		s.last = append(s.last, step[T]{number: number})
	}
	s.join(&s.last[len(s.last)-1].value, x, fresh)
	if len(s.last) > steps {
		s.last = slices.Delete(s.last, 0, 1)
	}
}

// All calls f with the start and the value of each of the last steps up to now, oldest first.
func (s *Series[T]) All(now time.Duration, f func(start time.Duration, value T)) {
	for _, x := range s.last {
		if x.number > int64(now/Step)-steps {
			f(time.Duration(x.number)*Step, x.value)
		}
	}
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
