package trace

import (
	"fmt"
	"slices"

	"github.com/eagergc/eagergc/pressure"
)

// MaxBytes is more than any size in a trace, and more than the sum of all sizes.
const MaxBytes = int64(1) << 62

// An EventError is the first thing that is wrong with a trace.
type EventError struct {
	Index int   // of the event
	Event Event //
	Err   error // the fault
}

func (e *EventError) Error() string {
	return fmt.Sprintf("trace: event %d (%v at %d ns): %v", e.Index, e.Event.Kind, e.Event.Time, e.Err)
}

func (e *EventError) Unwrap() error { return e.Err }

// Validate returns an [EventError] for the first event that breaks an invariant of the package, or
// nil. Its memory is in proportion to the objects that are live at once, and a bit for each other
// object. In a trace with a Free, dropped objects count as live until they are freed.
func (t *Trace) Validate() error {
	v := validator{labels: len(t.Labels), objects: make(map[uint64]object), freed: make(idSet)}
	v.dropEnds = !slices.ContainsFunc(t.Events, func(e Event) bool { return e.Kind == Free })
	for i, e := range t.Events {
		if err := v.event(e); err != nil {
			return &EventError{Index: i, Event: e, Err: err}
		}
	}
	return nil
}

// An object is one that was allocated and not freed.
type object struct {
	bytes   int64
	space   pressure.Space
	dropped bool
}

type validator struct {
	labels  int
	now     int64
	started bool
	gross   int64
	objects map[uint64]object
	freed   idSet // tells a double free from an unknown object

	dropEnds bool // there is no Free: a Drop is the last event of an object
}

func (v *validator) event(e Event) error {
	switch {
	case e.Kind >= kinds:
		return fmt.Errorf("unknown kind %d", e.Kind)
	case v.started && e.Time < v.now:
		return fmt.Errorf("time goes backwards: %d ns after %d ns", e.Time, v.now)
	case e.Bytes < 0 && e.Kind != Decision:
		return fmt.Errorf("%d bytes", e.Bytes)
	case e.Bytes >= MaxBytes:
		return fmt.Errorf("%d bytes are not below 2^62", e.Bytes)
	case e.Duration < 0:
		return fmt.Errorf("lasts %d ns", e.Duration)
	case e.Kind.Labelled() && e.Aux != 0 && int64(e.Aux) >= int64(v.labels):
		return fmt.Errorf("label %d of %d", e.Aux, v.labels)
	}
	v.now, v.started = e.Time, true
	switch e.Kind {
	case Alloc:
		return v.alloc(e)
	case Drop, Free:
		return v.release(e)
	}
	return nil
}

func (v *validator) alloc(e Event) error {
	if _, ok := v.objects[e.ID]; ok {
		return fmt.Errorf("object %d is allocated twice", e.ID)
	}
	if v.freed.has(e.ID) {
		return fmt.Errorf("object %d is allocated again", e.ID)
	}
	if e.Bytes >= MaxBytes-v.gross {
		return fmt.Errorf("all sizes together are not below 2^62 bytes")
	}
	v.gross += e.Bytes
	v.objects[e.ID] = object{bytes: e.Bytes, space: e.Space}
	return nil
}

func (v *validator) release(e Event) error {
	o, ok := v.objects[e.ID]
	if !ok {
		switch {
		case v.freed.has(e.ID) && v.dropEnds:
			return fmt.Errorf("object %d was dropped before", e.ID)
		case v.freed.has(e.ID):
			return fmt.Errorf("object %d was freed before", e.ID)
		}
		return fmt.Errorf("object %d was not allocated", e.ID)
	}
	if e.Bytes != o.bytes {
		return fmt.Errorf("%d bytes of object %d, which has %d", e.Bytes, e.ID, o.bytes)
	}
	if e.Space != o.space {
		return fmt.Errorf("object %d is in %v, not in %v", e.ID, o.space, e.Space)
	}
	if e.Kind == Free || v.dropEnds {
		v.freed.add(e.ID)
		delete(v.objects, e.ID)
		return nil
	}
	if o.dropped {
		return fmt.Errorf("object %d was dropped before", e.ID)
	}
	o.dropped = true
	v.objects[e.ID] = o
	return nil
}

// An idSet is a set of identities. Most are numbered one by one, so it has a bit for each of 512
// neighbours.
type idSet map[uint64]*[8]uint64

func (s idSet) add(id uint64) {
	page := s[id>>9]
	if page == nil {
		page = new([8]uint64)
		s[id>>9] = page
	}
	page[id>>6&7] |= 1 << (id & 63)
}

func (s idSet) has(id uint64) bool {
	page := s[id>>9]
	return page != nil && page[id>>6&7]&(1<<(id&63)) != 0
}
