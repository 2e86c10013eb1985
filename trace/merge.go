package trace

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// Merge returns base with the waits and annotations (Sync and Mark) of sync. The
// two are recordings of the same program by the same clock, for example a memory
// snapshot and a profile. Both must have a Start. Other events of sync are left
// out, because base has the memory events. At equal times base comes first.
//
// [Trace.StartAtFirst] defines time 0 of the result. If base has only one space,
// the Sync events belong to that space. Merge changes neither trace, and the
// result shares no memory with them.
func Merge(base, sync *Trace) (*Trace, error) {
	if base.Start.IsZero() || sync.Start.IsZero() {
		return nil, errors.New("trace: merge: both traces need the wall clock of their start")
	}
	shift := sync.Start.Sub(base.Start) // from sync's times to base's
	if !base.Start.Add(shift).Equal(sync.Start) {
		return nil, errors.New("trace: merge: the traces are centuries apart")
	}
	out := &Trace{Name: base.Name, Start: base.Start, Meta: make(map[string]string), Labels: slices.Clone(base.Labels)}
	maps.Copy(out.Meta, base.Meta)
	for key, text := range sync.Meta {
		out.Meta["sync_"+key] = text
	}
	out.Events = Interleave(Chunks{base.Events}, Chunks{waitsOf(sync, shift, NewLabeler(out))})
	if space, ok := onlySpace(base.Events); ok {
		for i := range out.Events {
			if out.Events[i].Kind == Sync {
				out.Events[i].Space = space
			}
		}
	}
	out.StartAtFirst()
	return out, nil
}

// waitsOf returns the Sync and Mark events of t, moved by shift.
func waitsOf(t *Trace, shift time.Duration, labels *Labeler) []Event {
	var waits []Event
	for _, e := range t.Events {
		if e.Kind == Sync || e.Kind == Mark {
			e.Time += int64(shift)
			e.Aux = labels.Label(t.Label(e))
			waits = append(waits, e)
		}
	}
	return waits
}

// onlySpace returns the space of all Alloc events, if there is only one.
func onlySpace(events []Event) (space pressure.Space, ok bool) {
	for _, e := range events {
		if e.Kind != Alloc {
			continue
		}
		if ok && e.Space != space {
			return 0, false
		}
		space, ok = e.Space, true
	}
	return space, ok
}

// StartAtFirst moves all events and Start so that the first Alloc, Drop, Free or
// Sync is at time 0. An event before it (memory reserved for the first object, or
// an annotation around it) is moved to time 0 and keeps the part of its duration
// that comes after that. A trace without an Alloc, Drop, Free or Sync starts at
// its first event.
func (t *Trace) StartAtFirst() {
	if len(t.Events) == 0 {
		return
	}
	first := t.Events[0].Time
	for _, e := range t.Events {
		if e.Kind == Alloc || e.Kind == Drop || e.Kind == Free || e.Kind == Sync {
			first = e.Time
			break
		}
	}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Time -= first; e.Time < 0 {
			e.Duration = max(0, e.Duration+time.Duration(e.Time))
			e.Time = 0
		}
	}
	if !t.Start.IsZero() {
		t.Start = t.Start.Add(time.Duration(first))
	}
}
