package trace

import "slices"

// Chunks is a list of events in pieces. It grows without copying, so an importer
// that does not know the number of events yet holds each event only once.
// The zero value is empty. It is for one goroutine at a time.
type Chunks [][]Event

const chunkEvents = 1024

// Record appends e.
func (c *Chunks) Record(e Event) {
	last := len(*c) - 1
	if last < 0 || len((*c)[last]) == cap((*c)[last]) {
		*c = append(*c, make([]Event, 0, chunkEvents))
		last++
	}
	(*c)[last] = append((*c)[last], e)
}

// Len returns the number of events.
func (c Chunks) Len() int {
	n := 0
	for _, piece := range c {
		n += len(piece)
	}
	return n
}

// skip removes the first event, and then any empty pieces at the front.
func (c Chunks) skip() Chunks {
	if len(c) > 0 && len(c[0]) > 0 {
		c[0] = c[0][1:]
	}
	for len(c) > 0 && len(c[0]) == 0 {
		c = c[1:]
	}
	return c
}

// Interleave merges lists of events, each sorted by time, into one new slice of
// exactly the needed size. At equal times the events of an earlier list come
// first. The lists stay as they are.
func Interleave(lists ...Chunks) []Event {
	total := 0
	var rest []Chunks // without empty lists; skip must not change the caller's
	for _, list := range lists {
		if n := list.Len(); n > 0 {
			total += n
			rest = append(rest, slices.DeleteFunc(slices.Clone(list), func(piece []Event) bool { return len(piece) == 0 }))
		}
	}
	merged := make([]Event, 0, total)
	for len(rest) > 1 {
		first := 0
		for i := range rest {
			if rest[i][0][0].Time < rest[first][0][0].Time {
				first = i
			}
		}
		merged = append(merged, rest[first][0][0])
		if rest[first] = rest[first].skip(); len(rest[first]) == 0 {
			rest = slices.Delete(rest, first, first+1)
		}
	}
	for _, list := range rest {
		for _, piece := range list {
			merged = append(merged, piece...)
		}
	}
	return merged
}
