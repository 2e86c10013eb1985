package cuda

import (
	"cmp"
	"slices"
	"time"
)

// A CallCount says how often a function of the driver was called, and how long the calls took in
// all.
type CallCount struct {
	Name  string
	Calls int64
	Time  time.Duration
}

// Calls returns the functions of the driver that this package has called since the program started,
// the most expensive first, over all devices. Functions that ask for properties or open contexts
// are not counted. Counting and timing a call takes two readings of the clock and two atomic
// additions.
func Calls() []CallCount {
	all := slices.DeleteFunc(calls(), func(c CallCount) bool { return c.Calls == 0 })
	slices.SortStableFunc(all, func(a, b CallCount) int { return cmp.Compare(b.Time, a.Time) })
	return all
}
