package trace

import (
	"fmt"

	"github.com/eagergc/eagergc/pressure"
)

// MaxBytes is more than any size in a trace, and more than the sum of all sizes.
const MaxBytes = int64(1) << 62

// Validate returns an error that names the first event that breaks an invariant of the package, or
// nil. Its memory is in proportion to the objects.
func (t *Trace) Validate() error {
	v := validator{labels: len(t.Labels), objects: make(map[uint64]object)}
	for i, e := range t.Events {
		if err := v.event(e); err != nil {
			lost := ""
			if n := t.Lost(); n > 0 {
				lost = fmt.Sprintf(" (the recorder lost %d events: record with a larger RecorderConfig.Buffer)", n)
			}
			return fmt.Errorf("trace: event %d (%v at %d ns): %w%s", i, e.Kind, e.Time, err, lost)
		}
	}
	return nil
}

// Lost returns the number of events that the [Recorder] lost, as the Marks with [LostLabel] say.
// Drops of objects whose allocation was lost make such a trace invalid.
func (t *Trace) Lost() (n int64) {
	for _, e := range t.Events {
		if e.Kind == Mark && t.Label(e) == LostLabel {
			n += e.Bytes
		}
	}
	return n
}

// An object is one that was allocated, with its last event.
type object struct {
	bytes int64
	space pressure.Space
	last  Kind
}

type validator struct {
	labels  int
	now     int64
	started bool
	gross   int64
	objects map[uint64]object
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
	if e.Bytes >= MaxBytes-v.gross {
		return fmt.Errorf("all sizes together are not below 2^62 bytes")
	}
	v.gross += e.Bytes
	v.objects[e.ID] = object{e.Bytes, e.Space, Alloc}
	return nil
}

func (v *validator) release(e Event) error {
	o, ok := v.objects[e.ID]
	switch {
	case !ok:
		return fmt.Errorf("object %d was not allocated", e.ID)
	case o.last == Free:
		return fmt.Errorf("object %d was freed before", e.ID)
	case o.last == Drop && e.Kind == Drop:
		return fmt.Errorf("object %d was dropped before", e.ID)
	case e.Bytes != o.bytes:
		return fmt.Errorf("%d bytes of object %d, which has %d", e.Bytes, e.ID, o.bytes)
	case e.Space != o.space:
		return fmt.Errorf("object %d is in %v, not in %v", e.ID, o.space, e.Space)
	}
	o.last = e.Kind
	v.objects[e.ID] = o
	return nil
}
