package torchsnap

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A device is one list of entries and what its segments held at the end.
type device struct {
	space   pressure.Space
	events  trace.Chunks      // in absolute ns, or in entries if there is no clock
	entries int               // read so far
	now     int64             // time of the last entry
	objects map[uint64]object // by address; also those that are gone, for their last entry
	fresh   []span            // segments of the window, by address
	before  []object          // freed in the window, but not allocated in it
	held    []block           // live at the end, by the segments

	reserved    int64 // bytes taken in the window
	released    int64 // bytes given back in the window
	reservedEnd int64 // bytes held at the end, by the segments
}

// An object is the last one seen at an address.
type object struct {
	id     uint64
	addr   uint64
	size   int64
	stream uint32
	site   uint32 // label, of one that was live before the window
	live   bool
	entry  int // that allocated or freed it
}

type span struct{ from, to uint64 }

// A block is a piece of a segment that is in use at the end.
type block struct {
	addr   uint64
	size   int64
	list   int64 // number of the list of blocks that it is in
	stream uint32
	site   uint32 // label
}

func newDevice(space pressure.Space) *device {
	return &device{space: space, objects: make(map[uint64]object)}
}

// entry takes one entry of d's trace.
func (s *snapshot) entry(d *device, r *record) error {
	now, err := s.time(d, r)
	if err != nil {
		return err
	}
	d.now = now
	e := trace.Event{Time: now, Space: d.space, Stream: s.stream(r)}
	action := s.word(r, fAction)
	switch action {
	case "alloc", "free_requested", "segment_alloc", "segment_map", "segment_free", "segment_unmap":
		return s.memory(d, r, action, e)
	case "free_completed":
		return nil
	case "oom":
		e.Kind = trace.Refuse
		e.Bytes, err = r.integer(fSize, 1, maxSize)
	case "snapshot", "workspace_snapshot", "empty_cache", "user_defined":
		e.Kind = trace.Mark
		e.Aux = s.labels.Label(action)
	case "":
		return errors.New("no action")
	default:
		return fmt.Errorf("unknown action %q", action)
	}
	if err == nil {
		d.events.Record(e)
	}
	return err
}

// memory takes an entry that is about an address and a size.
func (s *snapshot) memory(d *device, r *record, action string, e trace.Event) error {
	addr, err := r.integer(fAddr, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	if e.Bytes, err = r.integer(fSize, 1, maxSize); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	switch action {
	case "alloc":
		err = s.alloc(d, uint64(addr), &e, s.site(r))
	case "free_requested":
		err = s.drop(d, uint64(addr), &e)
	case "segment_alloc", "segment_map":
		e.Kind = trace.Reserve
		d.noteFresh(span{uint64(addr), uint64(addr) + uint64(e.Bytes)})
		err = count(&d.reserved, e.Bytes)
	default:
		e.Kind = trace.Release
		err = count(&d.released, e.Bytes)
	}
	if err == nil {
		d.events.Record(e)
	}
	return err
}

func (s *snapshot) alloc(d *device, addr uint64, e *trace.Event, site uint32) error {
	if o := d.objects[addr]; o.live {
		return fmt.Errorf("alloc of address %#x, which entry %d allocated and nothing freed", addr, o.entry)
	}
	e.Kind, e.ID, e.Aux = trace.Alloc, s.newID(), site
	d.objects[addr] = object{id: e.ID, size: e.Bytes, live: true, entry: d.entries}
	return count(&s.gross, e.Bytes)
}

// drop takes a free. One of an address that is not known frees an object that
// was live before the window, unless its segment is younger than that.
func (s *snapshot) drop(d *device, addr uint64, e *trace.Event) error {
	o, known := d.objects[addr]
	switch {
	case known && !o.live:
		return fmt.Errorf("double free of address %#x, which entry %d freed", addr, o.entry)
	case !known && d.isFresh(addr):
		return fmt.Errorf("free of address %#x, which was never allocated: its segment was taken in the window", addr)
	case !known:
		o = object{id: s.newID(), addr: addr, size: e.Bytes, stream: e.Stream}
		d.before = append(d.before, o)
		if err := count(&s.gross, o.size); err != nil {
			return err
		}
	}
	e.Kind, e.ID, e.Bytes = trace.Drop, o.id, o.size
	o.live, o.entry = false, d.entries
	d.objects[addr] = o
	return nil
}

// noteFresh remembers a segment taken in the window.
func (d *device) noteFresh(sp span) {
	i, found := slices.BinarySearchFunc(d.fresh, sp.from, compareFrom)
	if found {
		d.fresh[i].to = max(d.fresh[i].to, sp.to)
		return
	}
	d.fresh = slices.Insert(d.fresh, i, sp)
}

func (d *device) isFresh(addr uint64) bool {
	i, found := slices.BinarySearchFunc(d.fresh, addr, compareFrom)
	return found || i > 0 && addr < d.fresh[i-1].to
}

func compareFrom(s span, from uint64) int {
	switch {
	case s.from < from:
		return -1
	case s.from > from:
		return 1
	}
	return 0
}

// start returns the time of the first Alloc or Drop, or else of the first event.
func (d *device) start() int64 {
	for _, piece := range d.events {
		for _, e := range piece {
			if e.Kind == trace.Alloc || e.Kind == trace.Drop {
				return e.Time
			}
		}
	}
	if len(d.events) > 0 {
		return d.events[0][0].Time
	}
	return math.MaxInt64
}

// block takes a block of a segment that is being read, if it is in use.
func (s *snapshot) block(list int64, r *record) error {
	if s.word(r, fState) != "active_allocated" {
		return nil
	}
	addr, err := r.integer(fAddress, 0, math.MaxInt64)
	if err != nil {
		return s.failBlock(err)
	}
	size := fRequested
	if _, ok := r.get(size); !ok {
		size = fSize
	}
	n, err := r.integer(size, 1, maxSize)
	if err != nil {
		return s.failBlock(err)
	}
	s.blocks = append(s.blocks, block{addr: uint64(addr), size: n, list: list, site: s.site(r)})
	return nil
}

func (s *snapshot) failBlock(err error) error {
	return fmt.Errorf("active block %d of its segment: %w", len(s.blocks), err)
}

// segment takes a segment, whose blocks have been read before it.
func (s *snapshot) segment(r *record) error {
	n, err := r.integer(fDevice, 0, int64(pressure.MaxDevices)-1)
	if err != nil {
		return fmt.Errorf("segment: %w", err)
	}
	d, err := s.device(n)
	if err != nil {
		return err
	}
	total, err := r.integer(fTotal, 0, maxSize)
	if err != nil {
		return fmt.Errorf("segment: %w", err)
	}
	if err := count(&d.reservedEnd, total); err != nil {
		return fmt.Errorf("segment: %w", err)
	}
	stream := s.stream(r)
	blocks, ok := r.get(fBlocks)
	if !ok || blocks.kind != kList {
		return nil
	}
	// Blocks wait in the order of their lists, and so of their segments.
	for len(s.blocks) > 0 && s.blocks[0].list <= blocks.n>>listBits {
		b := s.blocks[0]
		s.blocks = s.blocks[1:]
		if err := count(&s.gross, b.size); err != nil {
			return fmt.Errorf("segment: %w", err)
		}
		b.stream = stream
		d.held = append(d.held, b)
	}
	return nil
}

func containsKey(head []byte) bool {
	return bytes.Contains(head, []byte("segments")) || bytes.Contains(head, []byte("device_traces"))
}
