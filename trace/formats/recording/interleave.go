package recording

import (
	"slices"
	"unsafe"

	"github.com/eagergc/eagergc/trace"
)

// Append appends v to a list, and counts the memory of the list in a budget. While the list grows it
// has two arrays.
func Append[T any](b *Budget, list []T, v T) []T {
	before := cap(list)
	if list = append(list, v); cap(list) != before {
		b.Hold(int64(cap(list)) * int64(unsafe.Sizeof(v)))
		b.Hold(-int64(before) * int64(unsafe.Sizeof(v)))
	}
	return list
}

// Interleave merges lists of events, each sorted by time, into the longest of them, and returns it.
// The lists may not be used afterwards. At equal times the events of an earlier list come first.
func Interleave(lists ...[]trace.Event) []trace.Event {
	into, total := 0, 0
	for i, list := range lists {
		total += len(list)
		if len(list) > len(lists[into]) {
			into = i
		}
	}
	if total == 0 {
		return nil
	}
	own := len(lists[into])
	rest := slices.Clone(lists) // the events that are not yet in their place
	all := slices.Grow(lists[into], total-own)[:total]
	rest[into] = all[:own]
	// From the back, so that nothing is written over before it is moved.
	for at := len(all) - 1; len(rest[into]) <= at; at-- {
		last := -1
		for i := range rest {
			if len(rest[i]) > 0 && (last < 0 || rest[i][len(rest[i])-1].Time >= rest[last][len(rest[last])-1].Time) {
				last = i
			}
		}
		end := len(rest[last]) - 1
		all[at], rest[last] = rest[last][end], rest[last][:end]
	}
	return all
}
