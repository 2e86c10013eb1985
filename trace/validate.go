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
			return fmt.Errorf("trace: event %d (%v at %d ns): %w%s", i, e.Kind, e.Time, err, t.Lost())
		}
	}
	return nil
}

// Lost returns a text in parentheses, for the end of an error, that says how many events the
// [Recorder] lost, and what to do. It is empty if there are no Marks with [LostLabel]. A drop of an
// object whose allocation was lost makes a trace invalid.
func (t *Trace) Lost() string {
	n := int64(0)
	for _, e := range t.Events {
		if e.Kind == Mark && t.Label(e) == LostLabel {
			n += e.Bytes
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (the recorder lost %d events: record with a larger RecorderConfig.Buffer)", n)
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
