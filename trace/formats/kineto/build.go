package kineto

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	gotime "time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A memory is the state of one device while rows become events.
type memory struct {
	unknown  int64 // if seen: bytes that were live before and that nothing has freed yet
	reserved int64
	seen     bool // there was an event with Total Allocated
}

// A builder turns sorted rows into events.
type builder struct {
	budget  *recording.Budget
	events  []trace.Event
	before  []trace.Event // at time 0
	devices map[pressure.Space]*memory
	start   int64 // ns from base
	objects *recording.Objects
}

func (p *profile) finish() (*trace.Trace, error) {
	p.ahead()
	rows := p.rows
	if len(rows) == 0 {
		return nil, fmt.Errorf("kineto: empty trace: none of %d events is about device memory, a wait or an annotation", p.events)
	}
	slices.SortFunc(rows, func(a, b row) int { // the marks of ahead share an index, and the last one at a time counts
		return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.last(), b.last()), cmp.Compare(a.index, b.index), cmp.Compare(a.dur, b.dur))
	})
	if p.base+rows[0].ns < 0 {
		return nil, p.at(int(rows[0].index), errors.New("time before 1970"))
	}
	b := &builder{
		devices: make(map[pressure.Space]*memory), start: start(rows),
		budget: p.budget, objects: recording.NewObjects(p.budget, "traceEvents[%d]"),
	}
	for _, ro := range rows {
		if err := b.add(ro); err != nil {
			return nil, p.at(int(ro.index), err)
		}
	}
	p.rows = nil
	if err := b.rest(); err != nil {
		return nil, fmt.Errorf("kineto: live before the profile: %w", err)
	}
	t := p.t
	p.meta(b.before)
	if err := p.budget.Err(); err != nil {
		return nil, fmt.Errorf("kineto: %w", err)
	}
	t.Events = recording.Interleave(b.before, b.events)
	recording.PlaceWaits(t.Events)
	p.clock()
	recording.StartAtFirst(t)
	return t, nil
}

// last puts Sync events after others of the same time.
func (ro row) last() int {
	if ro.class == classSync {
		return 1
	}
	return 0
}

// start returns the time of the first row about memory or a wait.
func start(rows []row) int64 {
	for _, ro := range rows {
		if ro.class == classMemory || ro.class == classSync {
			return ro.ns
		}
	}
	return rows[0].ns
}

// clock sets the Start of the trace. In a profile without a base, times count from 1970 or from an
// unknown moment.
func (p *profile) clock() {
	year2000 := gotime.Date(2000, 1, 1, 0, 0, 0, 0, gotime.UTC)
	first := p.base + p.t.Events[len(p.t.Events)-1].Time
	if gotime.Unix(0, first).Before(year2000) {
		p.t.Meta["clock"] = "of the profiler, not related to the wall clock"
		return
	}
	p.t.Start = gotime.Unix(0, p.base).UTC()
	p.t.Meta["clock"] = "wall clock, ns"
}

func (b *builder) add(ro row) error {
	e := trace.Event{Time: ro.ns, Duration: gotime.Duration(ro.dur), Stream: ro.thread, Space: ro.space}
	switch ro.class {
	case classSync:
		e.Kind, e.Space = trace.Sync, pressure.Device(0) // if there are several: see PlaceWaits
	case classMark:
		e.Kind, e.Aux = trace.Mark, ro.label
	case classOOM:
		e.Kind, e.Bytes = trace.Refuse, ro.bytes
	case classMemory:
		return b.memory(ro, e)
	}
	b.events = recording.Append(b.budget, b.events, e)
	return nil
}

func (b *builder) memory(ro row, e trace.Event) error {
	d := b.devices[ro.space]
	if d == nil {
		d = new(memory)
		b.devices[ro.space] = d
	}
	if !d.seen && ro.allocated >= 0 {
		d.seen = true
		if d.unknown = ro.allocated - ro.bytes; d.unknown < 0 {
			return fmt.Errorf("total allocated is %d after %d bytes: less than nothing was live before", ro.allocated, ro.bytes)
		}
	}
	b.reserve(d, ro)
	var err error
	e.Duration = 0
	if e.Bytes = ro.bytes; ro.bytes > 0 {
		err = b.objects.Alloc(&e, ro.addr, int(ro.index))
	} else {
		e.Bytes = -ro.bytes
		err = b.drop(d, ro, &e)
	}
	b.events = recording.Append(b.budget, b.events, e)
	return err
}

// reserve records the change of the pool's reserved bytes since the last event.
func (b *builder) reserve(d *memory, ro row) {
	if ro.reserved < 0 || ro.reserved == d.reserved {
		return
	}
	e := trace.Event{Time: ro.ns, Kind: trace.Reserve, Space: ro.space, Bytes: ro.reserved - d.reserved}
	if e.Bytes < 0 {
		e.Kind, e.Bytes = trace.Release, -e.Bytes
	}
	d.reserved = ro.reserved
	b.events = recording.Append(b.budget, b.events, e)
}

// drop takes a free. If its address is unknown, the object was live before the window.
func (b *builder) drop(d *memory, ro row, e *trace.Event) error {
	known, err := b.objects.Drop(e, ro.addr, int(ro.index))
	if known || err != nil {
		return err
	}
	if d.seen {
		if d.unknown -= e.Bytes; d.unknown < 0 {
			return fmt.Errorf("free of address %#x, which was never allocated: only %d more bytes were live before the profile", ro.addr, d.unknown+e.Bytes)
		}
	}
	b.held(*e)
	return nil
}

// held allocates the object of e, which was live before the profile.
func (b *builder) held(e trace.Event) {
	b.before = recording.Append(b.budget, b.before, trace.Event{Time: b.start, Kind: trace.Alloc, Space: e.Space, ID: e.ID, Bytes: e.Bytes})
}

// rest adds, for each device, one object with all bytes that were live before the
// profile and that nothing has freed.
func (b *builder) rest() error {
	for n := range pressure.MaxDevices {
		d := b.devices[pressure.Device(n)]
		if d == nil || d.unknown <= 0 {
			continue
		}
		id, err := b.objects.New(d.unknown)
		if err != nil {
			return err
		}
		b.held(trace.Event{Space: pressure.Device(n), ID: id, Bytes: d.unknown})
	}
	return nil
}
