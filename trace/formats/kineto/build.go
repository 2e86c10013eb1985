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
	space    pressure.Space
	objects  map[uint64]object // by address: the last one there, live or not
	unknown  int64             // if seen: bytes that were live before and that nothing has freed yet
	reserved int64
	seen     bool // there was an event with Total Allocated
}

// An object is the last one seen at an address.
type object struct {
	id    uint64
	bytes int64
	live  bool
	index int32 // of the event that allocated or freed it
}

// A builder turns sorted rows into events.
type builder struct {
	budget  *recording.Budget
	events  []trace.Event
	before  []trace.Event // at time 0
	devices map[pressure.Space]*memory
	start   int64 // ns from base
	ids     uint64
	gross   int64
}

// finish turns the rows into the trace.
func (p *profile) finish() (*trace.Trace, error) {
	if len(p.rows) > 0 {
		p.ahead()
	}
	rows := p.rows
	if len(rows) == 0 {
		return nil, fmt.Errorf("kineto: empty trace: none of %d events is about device memory, a wait or an annotation", p.events)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.last(), b.last()), cmp.Compare(a.index, b.index))
	})
	if p.base+rows[0].ns < 0 {
		return nil, p.at(int(rows[0].index), errors.New("time before 1970"))
	}
	b := &builder{
		devices: make(map[pressure.Space]*memory), start: start(rows),
		budget: p.budget,
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
	b.spaceSyncs()
	t := p.t
	p.meta(b.before)
	if err := p.budget.Err(); err != nil {
		return nil, fmt.Errorf("kineto: %w", err)
	}
	t.Events = recording.Interleave(b.before, b.events)
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

// clock finds out what the times count from. In a profile without a base they count
// from 1970, or from an unknown moment.
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
		e.Kind = trace.Sync
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
		d = &memory{space: ro.space, objects: make(map[uint64]object)}
		b.devices[ro.space] = d
	}
	if !d.seen && ro.allocated >= 0 {
		d.seen = true
		if d.unknown = ro.allocated - ro.bytes; d.unknown < 0 {
			return fmt.Errorf("Total Allocated %d after %d Bytes: less than nothing was live before", ro.allocated, ro.bytes)
		}
	}
	b.reserve(d, ro)
	var err error
	e.Duration = 0
	if ro.bytes > 0 {
		err = b.alloc(d, ro, &e)
	} else {
		err = b.drop(d, ro, &e)
	}
	b.events = recording.Append(b.budget, b.events, e)
	return err
}

// reserve records what the pool took or gave back since its last event.
func (b *builder) reserve(d *memory, ro row) {
	if ro.reserved < 0 || ro.reserved == d.reserved {
		return
	}
	e := trace.Event{Time: ro.ns, Kind: trace.Reserve, Space: d.space, Bytes: ro.reserved - d.reserved}
	if e.Bytes < 0 {
		e.Kind, e.Bytes = trace.Release, -e.Bytes
	}
	d.reserved = ro.reserved
	b.events = recording.Append(b.budget, b.events, e)
}

func (b *builder) alloc(d *memory, ro row, e *trace.Event) error {
	if o := d.objects[ro.addr]; o.live {
		return fmt.Errorf("allocation of address %#x, which traceEvents[%d] allocated and nothing freed", ro.addr, o.index)
	}
	e.Kind, e.ID, e.Bytes = trace.Alloc, b.newID(), ro.bytes
	b.put(d, ro.addr, object{id: e.ID, bytes: ro.bytes, live: true, index: ro.index})
	return b.count(ro.bytes)
}

// drop takes a free. If its address is not known, the object was live before the
// window.
func (b *builder) drop(d *memory, ro row, e *trace.Event) error {
	o, known := d.objects[ro.addr]
	if known && !o.live {
		return fmt.Errorf("double free of address %#x, which traceEvents[%d] freed", ro.addr, o.index)
	}
	if !known {
		o = object{id: b.newID(), bytes: -ro.bytes}
		if d.seen && o.bytes > d.unknown {
			return fmt.Errorf("free of address %#x, which was never allocated: only %d more bytes were live before the profile", ro.addr, d.unknown)
		}
		if d.seen {
			d.unknown -= o.bytes
		}
		if err := b.held(d, o); err != nil {
			return err
		}
	}
	e.Kind, e.ID, e.Bytes = trace.Drop, o.id, o.bytes
	o.live, o.index = false, ro.index
	b.put(d, ro.addr, o)
	return nil
}

// objectBytes is what an address takes in memory.objects.
const objectBytes = 96

// put remembers the last object at an address.
func (b *builder) put(d *memory, addr uint64, o object) {
	before := len(d.objects)
	d.objects[addr] = o
	b.budget.Hold(int64(len(d.objects)-before) * objectBytes)
}

// held adds an object that was live before the profile.
func (b *builder) held(d *memory, o object) error {
	b.before = recording.Append(b.budget, b.before, trace.Event{Time: b.start, Kind: trace.Alloc, Space: d.space, ID: o.id, Bytes: o.bytes})
	return b.count(o.bytes)
}

// rest adds, for each device, one object with all bytes that were live before the
// profile and that nothing has freed.
func (b *builder) rest() error {
	for n := range pressure.MaxDevices {
		d := b.devices[pressure.Device(n)]
		if d == nil || d.unknown <= 0 {
			continue
		}
		if err := b.held(d, object{id: b.newID(), bytes: d.unknown}); err != nil {
			return err
		}
	}
	return nil
}

// spaceSyncs gives Sync events their space: the only device, or device 0 if there
// are several.
func (b *builder) spaceSyncs() {
	space := pressure.Device(0)
	if len(b.devices) == 1 {
		for only := range b.devices {
			space = only
		}
	}
	events := b.events
	for i := range events {
		if events[i].Kind == trace.Sync {
			events[i].Space = space
		}
	}
}

func (b *builder) newID() uint64 {
	b.ids++
	return b.ids
}

// count adds to the sum of all sizes, which must stay below 2^62.
func (b *builder) count(bytes int64) error {
	if bytes > maxSize-b.gross {
		return errors.New("the sizes so far add up to 2^62 bytes or more")
	}
	b.gross += bytes
	return nil
}
