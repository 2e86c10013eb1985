package torchsnap

import (
	"errors"
	"fmt"
	"math"

	"github.com/eagergc/eagergc/trace"
)

const (
	maxSize = trace.MaxBytes - 1 // bytes, of an object or of all
	maxTime = 1 << 62 / 1000     // us since 1970
)

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

func (s *snapshot) entry(r *record) (e entry, err error) {
	if e.Time, err = r.time(); err != nil {
		return e, err
	}
	e.Stream = s.stream(r)
	action := s.text(r, fAction)
	if kind, ok := actions[action]; ok {
		e.Kind, e.completed = kind, action == "free_completed"
		return e, s.memory(r, action, &e)
	}
	switch action {
	case "oom":
		e.Kind = trace.Refuse
		e.Bytes, err = r.integer(fSize, 1, maxSize)
	case "snapshot", "workspace_snapshot", "empty_cache", "user_defined":
		e.Kind = trace.Mark
		e.Aux = s.labels.Label(action)
	case "":
		err = errors.New("no action")
	default:
		err = fmt.Errorf("unknown action %q", action)
	}
	return e, err
}

// memory reads the fields of an entry that is about an address and a size.
func (s *snapshot) memory(r *record, action string, e *entry) error {
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

// activeBlock reads a block; ok is false if it is not in use.
func (s *snapshot) activeBlock(number int64, r *record) (b block, ok bool, err error) {
	if s.text(r, fState) != "active_allocated" {
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
func (s *snapshot) text(r *record, field int) string {
	if v, ok := r.get(field); ok && v.kind == kText && v.n != textLost {
		return s.texts[v.n]
	}
	return ""
}

func (s *snapshot) stream(r *record) uint32 {
	v, ok := r.get(fStream)
	if !ok || v.kind != kInt {
		return 0
	}
	n, ok := s.streams[v.n]
	if !ok {
		n = uint32(len(s.streams))
		s.streams[v.n] = n
		s.budget.Hold(32)
	}
	return n
}

// time returns the record's time in ns.
func (r *record) time() (int64, error) {
	us, err := r.integer(fTime, 0, maxTime)
	return us * 1000, err
}
