package synthetic

import "github.com/eagergc/eagergc/trace"

// setSizes gives each Drop and Free of events, which are in order, the size and the
// space of its object: a program that writes them by hand need not remember either.
// An event whose object is not allocated before it stays as it is.
func setSizes(events []trace.Event) {
	objects := make(map[uint64]trace.Event)
	for i := range events {
		switch e := &events[i]; e.Kind {
		case trace.Alloc:
			objects[e.ID] = *e
		case trace.Drop, trace.Free:
			if o, ok := objects[e.ID]; ok {
				e.Bytes, e.Space = o.Bytes, o.Space
			}
		}
	}
}
