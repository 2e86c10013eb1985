package kineto

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

const maxSize = trace.MaxBytes - 1 // bytes, of an object or of all

// Detect reports whether head, the first bytes of an unpacked file, looks like a
// Chrome trace.
func Detect(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	for _, word := range []string{`"traceEvents"`, `"schemaVersion"`, `"deviceProperties"`, `"ph"`} {
		if bytes.Contains(head, []byte(word)) {
			return true
		}
	}
	return false
}

// maxValue bounds the part of a file that is held at once: an event, or a value that is skipped.
const maxValue = 16 << 20 // bytes

// Read reads a profile as the package comment describes. It reads r to its end and does not close it.
// Besides the trace it needs about 80 bytes for each event of the trace, and memory for one value of
// the file.
func Read(r io.Reader) (*trace.Trace, error) {
	in := &bounded{from: r, left: maxValue}
	p := &profile{in: in, Decoder: json.NewDecoder(in), t: &trace.Trace{Meta: make(map[string]string)}, budget: recording.BudgetOf(r)}
	p.labels = recording.NewLabeler(p.t, p.budget)
	if err := p.read(); err != nil {
		return nil, err
	}
	return p.finish()
}

// A bounded reader fails once it has read all that it may: a decoder holds a value whole.
type bounded struct {
	from       io.Reader
	read, left int64
}

var errValue = fmt.Errorf("value of over %d bytes", maxValue)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errValue
	}
	n, err := b.from.Read(p)
	b.read, b.left = b.read+int64(n), b.left-int64(n)
	return n, err
}

// A profile is the part of a file that has been read.
type profile struct {
	*json.Decoder
	in       *bounded
	t        *trace.Trace
	labels   *recording.Labeler
	base     int64 // ns since 1970 of ts 0
	found    bool  // traceEvents
	budget   *recording.Budget
	rows     []row
	launches []launch
	jobs     []job
	events   int // read so far
	skipped  int // events about CPU memory
}

// A row is an event that matters. Only memory events have an address and a size.
type row struct {
	ns        int64 // from base
	dur       int64
	addr      uint64
	bytes     int64 // negative if freed
	allocated int64 // by the device, after this event; -1 if unknown
	reserved  int64 // by the device, after this event; -1 if unknown
	index     int32 // in traceEvents
	thread    uint32
	label     uint32
	class     class
	space     pressure.Space
}

// read reads the whole file: an object with traceEvents, or only that list.
func (p *profile) read() error {
	c, err := p.Token()
	switch {
	case err != nil:
		return p.fail(err)
	case c == json.Delim('['):
		err = p.list()
	case c == json.Delim('{'):
		err = p.object()
	default:
		err = p.fail(fmt.Errorf("%v where { or [ is expected", c))
	}
	if err != nil {
		return err
	}
	if !p.found {
		return errors.New("kineto: not a Chrome trace: no traceEvents")
	}
	// To the end of the stream, where a packed one has its checksum.
	if c, err = p.Token(); err == io.EOF {
		return nil
	}
	return p.fail(cmp.Or(err, fmt.Errorf("%v where the end of the file is expected", c)))
}

// fail adds the place in the file to err.
func (p *profile) fail(err error) error {
	at := p.InputOffset()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		at = p.in.read
	}
	return fmt.Errorf("kineto: byte %d: %w", at, err)
}

// value reads the next value into v, as far as it is of the type of v.
func (p *profile) value(v any) error {
	p.in.left = maxValue
	var other *json.UnmarshalTypeError
	if err := p.Decode(v); err != nil && !errors.As(err, &other) {
		return p.fail(err)
	}
	return nil
}

// object reads what follows the brace of the outermost object.
func (p *profile) object() error {
	for p.More() {
		key, err := p.Token()
		if err != nil {
			return p.fail(err)
		}
		switch key {
		case "traceEvents":
			if c, err := p.Token(); err != nil || c != json.Delim('[') {
				return p.fail(cmp.Or(err, fmt.Errorf("%v where the list of events is expected", c)))
			}
			err = p.list()
		case "baseTimeNanoseconds":
			err = p.baseTime()
		default:
			err = p.value(new(struct{}))
		}
		if err != nil {
			return err
		}
	}
	return p.end()
}

func (p *profile) end() error {
	if _, err := p.Token(); err != nil {
		return p.fail(err)
	}
	return nil
}

func (p *profile) baseTime() error {
	var n number
	err := p.value(&n)
	if err != nil {
		return err
	}
	if p.base, err = n.integer("baseTimeNanoseconds", 0, maxTime); err != nil {
		return p.fail(errors.New("baseTimeNanoseconds is no time"))
	}
	return nil
}

// list reads what follows the bracket of the list of events.
func (p *profile) list() error {
	if p.found {
		return p.fail(errors.New("a second traceEvents"))
	}
	var e event
	for p.found = true; p.More(); p.events++ {
		e = event{}
		if err := p.value(&e); err != nil {
			return err
		}
		if err := p.take(&e); err != nil {
			return p.at(p.events, err)
		}
	}
	return p.end()
}

func (p *profile) at(index int, err error) error {
	return fmt.Errorf("kineto: traceEvents[%d]: %w", index, err)
}

func (p *profile) take(e *event) error {
	tid, _ := strconv.ParseInt(string(e.TID), 10, 64)
	ro := row{index: int32(p.events), thread: uint32(tid), class: e.class()}
	var err error
	switch ro.class {
	case classOther:
		return nil
	case classMemory, classOOM:
		if e.Args.DeviceType == "0" {
			p.skipped++
			return nil
		}
		if err = e.memory(&ro); err != nil {
			return err
		}
	case classMark:
		ro.label = p.labels.Label(e.Name)
	case classLaunch, classJob:
		return p.device(e, ro)
	}
	// A call that has not returned when profiling ends may have no dur.
	if ro.ns, ro.dur, err = e.span(ro.class == classSync); err != nil {
		return err
	}
	p.rows = recording.Append(p.budget, p.rows, ro)
	return nil
}

// device keeps work of a device, or a call that may have launched some.
func (p *profile) device(e *event, ro row) error {
	id, err := e.Args.Correlation.integer("", math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil
	}
	ns, dur, err := e.span(ro.class == classJob)
	if err != nil {
		return err
	}
	if ro.class == classLaunch {
		p.launches = recording.Append(p.budget, p.launches, launch{id, ns, dur, ro.index, ro.thread, copies[e.Name]})
	} else {
		p.jobs = recording.Append(p.budget, p.jobs, job{correlation: id, begin: ns, end: ns + dur,
			toHost: strings.Contains(e.Name, "DtoH"), pageable: strings.Contains(e.Name, "-> Pageable")})
	}
	return nil
}

func (e *event) memory(ro *row) error {
	device, err := e.Args.Device.integer("Device Id", 0, int64(pressure.MaxDevices)-1)
	if err != nil {
		return err
	}
	ro.space = pressure.Device(int(device))
	ro.allocated, ro.reserved = e.Args.Allocated.total(), e.Args.Reserved.total()
	if ro.bytes, err = e.Args.Bytes.integer("Bytes", -maxSize, maxSize); err != nil {
		return err
	}
	if ro.bytes == 0 || ro.class == classOOM && ro.bytes < 0 {
		return fmt.Errorf("%s of %d Bytes", e.Name, ro.bytes)
	}
	if ro.class == classMemory {
		ro.addr, err = e.Args.Addr.address()
	}
	return err
}

// meta fills the Meta of the trace. The Allocs of the objects that were live before the profile are
// before.
func (p *profile) meta(before []trace.Event) {
	var bytes int64
	for _, e := range before {
		bytes += e.Bytes
	}
	m := p.t.Meta
	m["source"] = "PyTorch profiler (Kineto), Chrome trace"
	m["entries"] = strconv.Itoa(p.events)
	m["live_before_objects"] = strconv.Itoa(len(before))
	m["live_before_bytes"] = strconv.FormatInt(bytes, 10)
	if p.skipped > 0 {
		m["cpu_memory_events_left_out"] = strconv.Itoa(p.skipped)
	}
}
