package torchsnap

import (
	"cmp"
	"errors"
	"fmt"
)

// The keys that matter in the dicts of a snapshot. They are the fields of a record.
const (
	fAction = iota
	fAddr
	fSize
	fStream
	fTime
	fDevice
	fAddress
	fTotal
	fRequested
	fState
	fStage
	fName
	fBlocks
	fields // number of fields
)

// names holds the field names, then other strings with fixed numbers.
var names = []string{
	fAction: "action", fAddr: "addr", fSize: "size", fStream: "stream", fTime: "time_us", fDevice: "device",
	fAddress: "address", fTotal: "total_size", fRequested: "requested_size", fState: "state", fStage: "stage",
	fName: "name", fBlocks: "blocks",
	textLost: "\x00", textSegments: "segments", textTraces: "device_traces", textNotes: "external_annotations",
}

const (
	textLost = fields + iota // stands for every string that is not kept
	textSegments
	textTraces
	textNotes
)

// words are the other strings that matter. They are interned first, so that they are kept however
// many strings a file has.
var words = []string{"alloc", "free_requested", "free_completed", "segment_alloc", "segment_map", "segment_free",
	"segment_unmap", "oom", "snapshot", "workspace_snapshot", "empty_cache", "user_defined", "active_allocated", "START", "END"}

// A record holds those items of a dict that matter.
type record struct {
	has uint32 // bit f is set if field f is there
	v   [fields]value
}

func (r *record) get(field int) (value, bool) { return r.v[field], r.has&(1<<field) != 0 }

// The low byte of a list's number is its kind. The rest of the number counts lists of blocks and lists
// of entries. The number of a list of entries is its device.
const (
	listOther int64 = iota
	listSegments
	listBlocks
	listTraces
	listNotes
	listEntries
	listBits = 8
)

type lists struct {
	traces  int64
	devices int64 // lists of entries
	blocks  int64 // lists of blocks
}

// numbered returns the number of the next list of one kind, and counts it.
func numbered(list int64, count *int64) int64 {
	*count++
	return list | (*count-1)<<listBits
}

func (m *machine) pushDict() error {
	if err := m.deliver(); err != nil {
		return err
	}
	var i int64
	if n := len(m.spare); n > 0 {
		i = m.spare[n-1]
		m.spare = m.spare[:n-1]
		m.records[i].has = 0
	} else {
		if len(m.records) >= maxRecords {
			return fmt.Errorf("more than %d dicts without a container", maxRecords)
		}
		i = int64(len(m.records))
		m.records = append(m.records, record{})
	}
	return m.push(value{kind: kDict, n: i})
}

// deliver gives the finished dict on top of the stack to its list, before the next one begins.
// PyTorch's own pickler needs this: unlike Python's, it adds items to a list only after the last
// one.
func (m *machine) deliver() error {
	f := m.floor()
	if f == 0 || len(m.stack) != f+1 || m.stack[f].kind != kDict || m.stack[f-1].kind != kList {
		return nil
	}
	if err := m.extendBy(m.stack[f-1].n, m.stack[f]); err != nil {
		return err
	}
	m.release(m.stack[f:])
	m.stack = m.stack[:f]
	return nil
}

func (m *machine) pushList() error { return m.push(value{kind: kList, n: m.nextList()}) }

// nextList returns the number of the list that is about to be pushed. The list matters if it stands
// under a known key, or in the list of device traces.
func (m *machine) nextList() int64 {
	h := len(m.stack)
	if h == 0 {
		return listOther
	}
	if under := m.stack[h-1]; under.kind == kText {
		return m.listAt(under.n)
	}
	if !m.inList(listTraces) {
		return listOther
	}
	return numbered(listEntries, &m.devices)
}

// inList reports whether the next value is an item of a list of the given kind. That list is on top of
// the stack, or under the last mark.
func (m *machine) inList(what int64) bool {
	h, f := len(m.stack), m.floor()
	return h > 0 && m.stack[h-1].is(what) || f > 0 && m.stack[f-1].is(what)
}

// is reports whether v is a list of the given kind.
func (v value) is(what int64) bool { return v.kind == kList && v.n&(1<<listBits-1) == what }

// listAt returns the number of the list whose key is text i.
func (m *machine) listAt(i int64) int64 {
	// root: the key is in the outermost dict, at the bottom of the stack.
	root := len(m.marks) == 0 && len(m.stack) == 2 || len(m.marks) == 1 && m.marks[0] == 1
	switch {
	case i == fBlocks:
		return numbered(listBlocks, &m.blocks)
	case i == textSegments && root:
		return listSegments
	case i == textNotes && root:
		return listNotes
	case i == textTraces && root:
		return numbered(listTraces, &m.traces)
	}
	return listOther
}

// release makes the records of values free for use again.
func (m *machine) release(values []value) {
	for _, v := range values {
		if v.kind == kDict {
			m.spare = append(m.spare, v.n)
		}
	}
}

// forget releases popped items. It takes and returns the error of popping them, as set and extend do.
func (m *machine) forget(items []value, err error) error {
	m.release(items)
	return err
}

// set puts pairs of keys and values into the dict on top of the stack.
func (m *machine) set(items []value, err error) error {
	into, wrong := m.top()
	if err := cmp.Or(err, wrong); err != nil {
		return err
	}
	if into.kind != kDict || len(items)%2 != 0 {
		return errors.New("items of what is no dict")
	}
	r := &m.records[into.n]
	for i := 0; i < len(items); i += 2 {
		if key := items[i]; key.kind == kText && key.n < fields {
			r.v[key.n] = items[i+1]
			r.has |= 1 << key.n
		}
	}
	m.release(items)
	return nil
}

// extend puts items into the list on top of the stack.
func (m *machine) extend(items []value, err error) error {
	into, wrong := m.top()
	if err := cmp.Or(err, wrong); err != nil {
		return err
	}
	if into.kind != kList {
		return errors.New("items of what is no list")
	}
	for _, v := range items {
		if err := m.extendBy(into.n, v); err != nil {
			return err
		}
	}
	m.release(items)
	return nil
}

func (m *machine) extendBy(list int64, v value) error {
	switch what := list & (1<<listBits - 1); {
	case what == listOther:
		return nil
	case what == listTraces:
		if v.kind != kList {
			return errors.New("device_traces holds what is no list")
		}
		return nil
	case v.kind != kDict:
		return errors.New("an entry, segment, block or annotation that is no dict, or the same as an earlier one")
	}
	return m.item(list, &m.records[v.n])
}
