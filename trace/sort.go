package trace

import (
	"cmp"
	"slices"
)

// Sort puts events in the order of a [Trace], unless their times are in order
// already: by time, at equal times Sync events last and the others as they
// stood.
func Sort(events []Event) {
	if slices.IsSortedFunc(events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) }) {
		return
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		if c := cmp.Compare(a.Time, b.Time); c != 0 {
			return c
		}
		return b2i(a.Kind == Sync) - b2i(b.Kind == Sync)
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
