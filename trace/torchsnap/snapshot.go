package torchsnap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/unpack"
)

const (
	maxSize = trace.MaxBytes - 1      // bytes, of an object or of all
	maxTime = 1 << 62 / 1000          // us since 1970
	step    = int64(time.Microsecond) // between entries that have no time
)

// Detect reports whether head, the first bytes of an unpacked file, looks like a
// pickle.
func Detect(head []byte) bool {
	if len(head) >= 2 && head[0] == 0x80 {
		return head[1] <= 5
	}
	// Protocols 0 and 1 have no header: a dict, and soon the first key.
	return len(head) > 0 && (head[0] == '(' || head[0] == '}') && containsKey(head)
}

// Read reads a snapshot; see the package comment for what becomes of it. It
// reads r to its end and does not close it. The memory that it needs beside the
// trace is about that of the trace.
func Read(r io.Reader) (*trace.Trace, error) {
	plain, err := unpack.NewReader(r, 0)
	if err != nil {
		return nil, fmt.Errorf("torchsnap: %w", err)
	}
	defer plain.Close()
	s := &snapshot{streams: map[int64]uint32{0: 0}}
	s.t = &trace.Trace{Meta: map[string]string{"source": "torch.cuda.memory snapshot"}}
	s.labels = trace.NewLabeler(s.t)
	s.machine = newMachine(plain, s.item)
	if err := s.machine.run(); err != nil {
		return nil, err
	}
	if s.machine.traces == 0 {
		return nil, errors.New("torchsnap: not a memory snapshot: no device_traces")
	}
	return s.finish()
}

// A snapshot is what has been read of a file so far.
type snapshot struct {
	*machine
	t       *trace.Trace
	labels  *trace.Labeler
	devices []*device
	streams map[int64]uint32 // stream handles, numbered in order of appearance; 0 stays 0
	objects uint64           // IDs given out
	gross   int64            // bytes of all objects
	timed   clock
	entries int
	blocks  []block // of segments that are being read, whose device is not yet known
	notes   notes
	sites   int // bytes of the labels of stacks

	beforeObjects int // live before the window
	beforeBytes   int64
}

// clock says whether entries have times: all or none.
type clock uint8

const (
	clockUnknown clock = iota
	clockWall
	clockNone
)

// item takes one finished dict of a list that matters.
func (s *snapshot) item(list int64, r *record) error {
	number := list >> listBits
	switch list & (1<<listBits - 1) {
	case listSegments:
		return s.segment(r)
	case listBlocks:
		return s.block(number, r)
	case listNotes:
		return s.note(r)
	}
	d, err := s.device(number)
	if err != nil {
		return err
	}
	if err := s.entry(d, r); err != nil {
		return fmt.Errorf("device %d, entry %d: %w", number, d.entries, err)
	}
	d.entries++
	s.entries++
	return nil
}

func (s *snapshot) device(n int64) (*device, error) {
	if n < 0 || n >= int64(pressure.MaxDevices) {
		return nil, fmt.Errorf("device %d: at most %d devices", n, pressure.MaxDevices)
	}
	for int64(len(s.devices)) <= n {
		s.devices = append(s.devices, newDevice(pressure.Device(len(s.devices))))
	}
	return s.devices[n], nil
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

func (s *snapshot) word(r *record, field int) string {
	if v, ok := r.get(field); ok && v.kind == kText && v.n != textLost {
		return s.texts[v.n]
	}
	return ""
}

// stream returns the number of the entry's stream.
func (s *snapshot) stream(r *record) uint32 {
	v, ok := r.get(fStream)
	if !ok || v.kind != kInt {
		return 0
	}
	n, ok := s.streams[v.n]
	if !ok {
		n = uint32(len(s.streams))
		s.streams[v.n] = n
	}
	return n
}

// time returns the entry's time in ns.
func (s *snapshot) time(d *device, r *record) (int64, error) {
	kind := clockWall
	if _, ok := r.get(fTime); !ok {
		kind = clockNone
	}
	if s.timed == clockUnknown {
		s.timed = kind
	}
	if s.timed != kind {
		return 0, errors.New("some entries have time_us and some do not")
	}
	if kind == clockNone {
		return int64(d.entries) * step, nil
	}
	us, err := r.integer(fTime, 0, maxTime)
	if err != nil {
		return 0, err
	}
	if us*1000 < d.now {
		return 0, fmt.Errorf("time goes backwards: time_us %d after %d", us, d.now/1000)
	}
	return us * 1000, nil
}

// finish puts the devices together.
func (s *snapshot) finish() (*trace.Trace, error) {
	if s.entries == 0 {
		return nil, errors.New("torchsnap: empty trace: device_traces has no entries (was the history recorded?)")
	}
	start := int64(maxTime) * 1000
	for _, d := range s.devices {
		start = min(start, d.start())
	}
	s.machine = nil // the memo is as large as the trace
	lists := []trace.Chunks{nil}
	for _, d := range s.devices {
		s.before(d, start, &lists[0])
		lists = append(lists, d.events)
	}
	if s.timed == clockWall {
		lists = append(lists, trace.Chunks{s.notes.marks(s.labels, start)})
	}
	t := s.t
	t.Events = trace.Interleave(lists...)
	t.Meta["clock"] = "none: entries are put 1 us apart, in their order"
	if s.timed == clockWall {
		t.Meta["clock"] = "wall clock, us"
		t.Start = time.Unix(0, 0).UTC()
	}
	t.Meta["entries"] = strconv.Itoa(s.entries)
	t.Meta["devices"] = strconv.Itoa(len(s.devices))
	t.Meta["live_before_objects"] = strconv.Itoa(s.beforeObjects)
	t.Meta["live_before_bytes"] = strconv.FormatInt(s.beforeBytes, 10)
	t.StartAtFirst()
	return t, nil
}

// before records what d held before its first entry, as events at start.
func (s *snapshot) before(d *device, start int64, into *trace.Chunks) {
	for _, b := range d.held {
		if _, known := d.objects[b.addr]; !known {
			o := object{id: s.newID(), addr: b.addr, size: b.size, stream: b.stream, site: b.site}
			d.objects[b.addr] = o
			d.before = append(d.before, o)
		}
	}
	if reserved := d.reservedEnd + d.released - d.reserved; reserved > 0 {
		into.Record(trace.Event{Time: start, Kind: trace.Reserve, Space: d.space, Bytes: reserved})
	}
	slices.SortFunc(d.before, func(a, b object) int { return cmp.Compare(a.addr, b.addr) })
	for _, o := range d.before {
		into.Record(trace.Event{Time: start, Kind: trace.Alloc, Space: d.space, ID: o.id, Bytes: o.size, Stream: o.stream, Aux: o.site})
		s.beforeObjects++
		s.beforeBytes += o.size
	}
}

func (s *snapshot) newID() uint64 {
	s.objects++
	return s.objects
}

// count adds n bytes to a sum of sizes, which must stay a sensible number.
func count(sum *int64, n int64) error {
	if n > maxSize-*sum {
		return errors.New("the sizes so far add up to 2^62 bytes or more")
	}
	*sum += n
	return nil
}
