package trace

import (
	"cmp"
	"slices"
)

// Sort puts events in the order of a [Trace]: by time, and at equal times Sync
// events last, the others in their present order. If the times are in order
// already, it changes nothing.
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
