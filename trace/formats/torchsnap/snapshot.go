package torchsnap

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// Detect reports whether head, the first bytes of an unpacked file, looks like a pickle of protocol
// 2 to 5.
func Detect(head []byte) bool {
	return len(head) >= 2 && head[0] == 0x80 && head[1] >= leastProtocol && head[1] <= mostProtocol
}

// Read reads a snapshot as the package comment describes. It reads r to its end and does not close
// it. Besides the trace it needs about as much memory again.
func Read(r io.Reader) (*trace.Trace, error) {
	t := &trace.Trace{Meta: map[string]string{"source": "torch.cuda.memory snapshot"}}
	b := recording.BudgetOf(r)
	s := &snapshot{t: t, objects: recording.NewObjects(b, "entry %d"), open: make(map[noteKey][]int),
		labels: recording.NewLabeler(t, b), streams: map[int64]uint32{0: 0}}
	s.machine = newMachine(r, b, s.item)
	if err := s.execute(); err != nil {
		return nil, err
	}
	if s.traces == 0 {
		return nil, errors.New("torchsnap: not a memory snapshot: no device_traces")
	}
	return s.finish()
}

// A snapshot is the part of a file that has been read. The machine finds items in the pickle. The
// snapshot checks their fields, and devices and notes keep them.
type snapshot struct {
	*machine
	t       *trace.Trace
	labels  *recording.Labeler
	streams map[int64]uint32 // stream handles, numbered in order of appearance; 0 stays 0
	objects *recording.Objects
	devices []*device
	notes   []trace.Event     // external annotations
	open    map[noteKey][]int // indices in notes
	blocks  []block           // of segments that are being read, whose device is not yet known
	entries int
}

// item takes one whole dict of a list that matters.
func (s *snapshot) item(list int64, r *record) error {
	number := list >> listBits
	switch list & (1<<listBits - 1) {
	case listSegments:
		if err := s.segment(r); err != nil {
			return fmt.Errorf("segment: %w", err)
		}
		return nil
	case listBlocks:
		b, ok, err := s.activeBlock(number, r)
		if err != nil {
			return fmt.Errorf("active block %d of its segment: %w", len(s.blocks), err)
		}
		if ok {
			s.blocks = append(s.blocks, b)
			s.budget.Hold(2 * int64(unsafe.Sizeof(b))) // here, and with its device
		}
		return nil
	case listNotes:
		return s.note(r)
	}
	d, err := s.device(number)
	if err != nil {
		return err
	}
	e, err := s.entry(r)
	if err == nil {
		err = d.add(e)
	}
	if err != nil {
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
		s.devices = append(s.devices, &device{space: pressure.Device(len(s.devices)), objects: s.objects, budget: s.budget})
	}
	return s.devices[n], nil
}

// segment takes a segment, whose blocks have been read before it.
func (s *snapshot) segment(r *record) error {
	number, err := r.integer(fDevice, 0, int64(pressure.MaxDevices)-1)
	if err != nil {
		return err
	}
	d, err := s.device(number)
	if err != nil {
		return err
	}
	total, err := r.integer(fTotal, 0, maxSize)
	if err == nil {
		err = count(&d.reservedEnd, total)
	}
	if err != nil {
		return err
	}
	stream := s.stream(r)
	// Blocks wait in the order of their lists, and so of their segments.
	list, ok := r.get(fBlocks)
	for ok && list.kind == kList && len(s.blocks) > 0 && s.blocks[0].list <= list.n>>listBits {
		b := s.blocks[0]
		s.blocks = s.blocks[1:]
		b.stream = stream
		d.held = append(d.held, b)
	}
	return nil
}

func (s *snapshot) finish() (*trace.Trace, error) {
	if s.entries == 0 {
		return nil, errors.New("torchsnap: empty trace: device_traces has no entries (was the history recorded?)")
	}
	start := int64(maxTime) * 1000
	for _, d := range s.devices {
		start = min(start, d.start())
	}
	t := s.t
	lists := [][]trace.Event{nil}
	for _, d := range s.devices {
		lists = append(lists, d.events)
	}
	var err error
	if lists[0], err = s.before(start); err != nil {
		return nil, fmt.Errorf("torchsnap: live before the window: %w", err)
	}
	lists = append(lists, s.marks(start))
	t.Meta["clock"] = "wall clock, us"
	t.Start = time.Unix(0, 0).UTC()
	if err := s.budget.Err(); err != nil {
		return nil, fmt.Errorf("torchsnap: %w", err)
	}
	t.Events = recording.Interleave(lists...)
	t.Meta["entries"] = strconv.Itoa(s.entries)
	t.Meta["devices"] = strconv.Itoa(len(s.devices))
	recording.StartAtFirst(t)
	return t, nil
}

// before returns the memory that the devices held before their first entries, as events at start.
func (s *snapshot) before(start int64) (events []trace.Event, err error) {
	var objects int
	var bytes int64
	for _, d := range s.devices {
		allocs, reserved, err := d.liveBefore()
		if err != nil {
			return nil, err
		}
		if reserved > 0 {
			events = append(events, trace.Event{Time: start, Kind: trace.Reserve, Space: d.space, Bytes: reserved})
		}
		for _, e := range allocs {
			e.Kind, e.Time, e.Duration = trace.Alloc, start, 0
			events = recording.Append(s.budget, events, e.Event)
			bytes += e.Bytes
		}
		objects += len(allocs)
	}
	s.t.Meta["live_before_objects"] = strconv.Itoa(objects)
	s.t.Meta["live_before_bytes"] = strconv.FormatInt(bytes, 10)
	return events, nil
}
