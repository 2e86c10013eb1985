package torchsnap

import (
	"errors"
	"fmt"
	"math"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

const (
	maxSize = trace.MaxBytes - 1 // bytes, of an object or of all
	maxTime = 1 << 62 / 1000     // us since 1970
)

// A decoder turns the records of a pickle into values for [device]. It checks fields and numbers
// texts. The device checks entries against each other.
type decoder struct {
	*machine
	budget  *recording.Budget
	labels  *recording.Labeler
	streams map[int64]uint32 // stream handles, numbered in order of appearance; 0 stays 0
}

// An entry is one action of a device's allocator.
type entry struct {
	trace.Event        // but for its ID and its space
	addr        uint64 // of an object or a segment
	completed   bool   // a Drop that is known only by free_completed
}

// actions are the entries' actions that have an address, as kinds of events.
var actions = map[string]trace.Kind{
	"alloc": trace.Alloc, "free_requested": trace.Drop, "free_completed": trace.Drop,
	"segment_alloc": trace.Reserve, "segment_map": trace.Reserve,
	"segment_free": trace.Release, "segment_unmap": trace.Release,
}

func (d *decoder) entry(r *record) (e entry, err error) {
	if e.Time, err = r.time(); err != nil {
		return e, err
	}
	e.Stream = d.stream(r)
	action := d.text(r, fAction)
	if kind, ok := actions[action]; ok {
		e.Kind, e.completed = kind, action == "free_completed"
		return e, d.memory(r, action, &e)
	}
	switch action {
	case "oom":
		e.Kind = trace.Refuse
		e.Bytes, err = r.integer(fSize, 1, maxSize)
	case "snapshot", "workspace_snapshot", "empty_cache", "user_defined":
		e.Kind = trace.Mark
		e.Aux = d.labels.Label(action)
	case "":
		err = errors.New("no action")
	default:
		err = fmt.Errorf("unknown action %q", action)
	}
	return e, err
}

// memory reads the fields of an entry that is about an address and a size.
func (d *decoder) memory(r *record, action string, e *entry) error {
	addr, err := r.integer(fAddr, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	e.addr = uint64(addr)
	if e.Bytes, err = r.integer(fSize, 1, maxSize); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}

// A block is a piece of a segment that is in use at the end.
type block struct {
	addr   uint64
	size   int64
	list   int64 // number of the list of blocks that it is in
	stream uint32
}

// block reads a block; ok is false if it is not in use.
func (d *decoder) block(number int64, r *record) (b block, ok bool, err error) {
	if d.text(r, fState) != "active_allocated" {
		return b, false, nil
	}
	addr, err := r.integer(fAddress, 0, math.MaxInt64)
	if err != nil {
		return b, false, err
	}
	size := fRequested
	if _, ok := r.get(size); !ok {
		size = fSize
	}
	n, err := r.integer(size, 1, maxSize)
	if err != nil {
		return b, false, err
	}
	return block{addr: uint64(addr), size: n, list: number}, true, nil
}

// A segment is memory that a device's allocator holds at the end.
type segment struct {
	device int64
	total  int64 // bytes
	stream uint32
	list   int64 // number of its list of blocks; -1 if it has none
}

func (d *decoder) segment(r *record) (s segment, err error) {
	if s.device, err = r.integer(fDevice, 0, int64(pressure.MaxDevices)-1); err != nil {
		return s, err
	}
	if s.total, err = r.integer(fTotal, 0, maxSize); err != nil {
		return s, err
	}
	s.stream, s.list = d.stream(r), -1
	if blocks, ok := r.get(fBlocks); ok && blocks.kind == kList {
		s.list = blocks.n >> listBits
	}
	return s, nil
}

// integer returns an integer field, which must be there and in [low, high].
func (r *record) integer(field int, low, high int64) (int64, error) {
	v, ok := r.get(field)
	switch {
	case !ok:
		return 0, fmt.Errorf("no %s", names[field])
	case v.kind == kBig:
		return 0, fmt.Errorf("%s is beyond 64 bits", names[field])
	case v.kind != kInt:
		return 0, fmt.Errorf("%s is no integer", names[field])
	case v.n < low || v.n > high:
		return 0, fmt.Errorf("%s %d is not in [%d, %d]", names[field], v.n, low, high)
	}
	return v.n, nil
}

// text returns a text field, or "" if the record lacks it.
func (d *decoder) text(r *record, field int) string {
	if v, ok := r.get(field); ok && v.kind == kText && v.n != textLost {
		return d.texts[v.n]
	}
	return ""
}

func (d *decoder) stream(r *record) uint32 {
	v, ok := r.get(fStream)
	if !ok || v.kind != kInt {
		return 0
	}
	n, ok := d.streams[v.n]
	if !ok {
		n = uint32(len(d.streams))
		d.streams[v.n] = n
		d.budget.Hold(32)
	}
	return n
}

// time returns the record's time in ns.
func (r *record) time() (int64, error) {
	us, err := r.integer(fTime, 0, maxTime)
	return us * 1000, err
}
