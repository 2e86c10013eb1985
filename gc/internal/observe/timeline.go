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

// A Series holds the values of the last steps of time. The zero value is ready to use. One goroutine
// at a time uses it.
type Series[T any] struct {
	last []step[T] // oldest first; steps without a value are left out
}

type step[T any] struct {
	number int64
	value  T
}

// At returns the value of the step at a time, for the caller to change. Fresh means that the step is
// new. A time before the last step counts for that step, because goroutines may call At in another
// order than they have read the clock.
func (s *Series[T]) At(now time.Duration) (value *T, fresh bool) {
	number := int64(now / Step)
	if fresh = len(s.last) == 0 || s.last[len(s.last)-1].number < number; fresh {
		s.last = append(s.last, step[T]{number: number})
	}
	if len(s.last) > steps {
		s.last = slices.Delete(s.last, 0, 1)
	}
	return &s.last[len(s.last)-1].value, fresh
}

// List returns the values of the last steps up to now, oldest first.
func (s *Series[T]) List(now time.Duration) (list []T) {
	for _, x := range s.last {
		if x.number > int64(now/Step)-steps {
			list = append(list, x.value)
		}
	}
	return list
}
