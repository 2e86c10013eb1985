package trace

import "github.com/eagergc/eagergc/trace/spill"

// Events is a growing list of events, for importers: see package spill.
type Events = spill.List[Event]

// NewEvents returns an empty list of events, which counts in s.
func NewEvents(s *spill.Store) *Events { return spill.New[Event](s, 0) }

// Interleave merges lists of events, each sorted by time, into the longest of them,
// and returns it; the others are empty then. At equal times the events of an earlier
// list come first. A list may be nil.
func Interleave(lists ...*Events) *Events {
	into, total := -1, 0
	for i, list := range lists {
		if list == nil {
			continue
		}
		total += list.Len()
		if into < 0 || list.Len() > lists[into].Len() {
			into = i
		}
	}
	if into < 0 {
		return NewEvents(nil)
	}
	rest := make([][]Event, len(lists)) // what is not yet in its place
	for i, list := range lists {
		if list != nil && i != into {
			rest[i] = list.Items()
		}
	}
	own := lists[into].Len()
	lists[into].Grow(total - own)
	all := lists[into].Items()
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
	for i, list := range lists {
		if list != nil && i != into {
			list.Free()
		}
	}
	return lists[into]
}
