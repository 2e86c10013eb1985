package recording

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Merge returns base with the waits and annotations (Sync and Mark) of sync. The two are recordings of
// the same program by the same clock, for example a memory snapshot and a profile. Both must have a
// Start. Other events of sync are left out, because base has the memory events. At equal times base
// comes first.
//
// [StartAtFirst] defines time 0 of the result. If base has only one space,
// the Sync events belong to that space. Merge changes neither trace, and the
// result shares no memory with them.
//
// Merge returns an error if the two cannot be of the same program: their spans must overlap.
func Merge(base, sync *trace.Trace) (*trace.Trace, error) {
	if base.Start.IsZero() || sync.Start.IsZero() {
		return nil, errors.New("trace: merge: both traces need the wall clock of their start")
	}
	shift := sync.Start.Sub(base.Start) // from sync's times to base's
	if !base.Start.Add(shift).Equal(sync.Start) {
		return nil, errors.New("trace: merge: the traces are centuries apart")
	}
	a, b := spanOf(base), spanOf(sync)
	if a.to.Before(b.from) || b.to.Before(a.from) {
		return nil, fmt.Errorf("trace: merge: not of the same time: one is from %v, the other from %v", a, b)
	}
	out := &trace.Trace{Name: base.Name, Start: base.Start, Meta: make(map[string]string), Labels: slices.Clone(base.Labels)}
	maps.Copy(out.Meta, base.Meta)
	for key, text := range sync.Meta {
		out.Meta["sync_"+key] = text
	}
	out.Events = Interleave(slices.Clone(base.Events), waitsOf(sync, shift, NewLabeler(out, nil)))
	PlaceWaits(out.Events)
	StartAtFirst(out)
	return out, nil
}

// A span is the time from the first to the last event of a trace.
type span struct{ from, to time.Time }

func spanOf(t *trace.Trace) span {
	var last int64
	for _, e := range t.Events {
		last = max(last, e.Time+int64(e.Duration))
	}
	return span{t.Start, t.Start.Add(time.Duration(last))}
}

func (s span) String() string {
	const form = "2006-01-02 15:04:05.000"
	return fmt.Sprintf("%s to %s UTC", s.from.UTC().Format(form), s.to.UTC().Format(form))
}

// waitsOf returns the Sync and Mark events of t, moved by shift.
func waitsOf(t *trace.Trace, shift time.Duration, labels *Labeler) (waits []trace.Event) {
	for _, e := range t.Events {
		if e.Kind == trace.Sync || e.Kind == trace.Mark {
			e.Time += int64(shift)
			e.Aux = labels.Label(t.Label(e))
			waits = append(waits, e)
		}
	}
	return waits
}

// PlaceWaits puts the Sync events into the space of the Alloc events, if there is only one.
func PlaceWaits(events []trace.Event) {
	var spaces []pressure.Space
	for _, e := range events {
		if e.Kind == trace.Alloc && !slices.Contains(spaces, e.Space) {
			spaces = append(spaces, e.Space)
		}
	}
	for i := range events {
		if e := &events[i]; e.Kind == trace.Sync && len(spaces) == 1 {
			e.Space = spaces[0]
		}
	}
}

// StartAtFirst moves all events and the Start of t so that the first Alloc, Drop, Free or Sync is at
// time 0. An event before it, such as an annotation around it, moves to time 0 and keeps the part of
// its duration after that. A trace without an Alloc, Drop, Free or Sync starts at its first event.
func StartAtFirst(t *trace.Trace) {
	if len(t.Events) == 0 {
		return
	}
	first := t.Events[0].Time
	for _, e := range t.Events {
		if e.Kind == trace.Alloc || e.Kind == trace.Drop || e.Kind == trace.Free || e.Kind == trace.Sync {
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
