package kineto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

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

// Read reads a profile as the package comment describes. It reads r to its end and
// does not close it. Besides the trace it needs about 80 bytes for each event of
// the trace.
func Read(r io.Reader) (*trace.Trace, error) {
	p := &profile{scanner: newScanner(r), t: &trace.Trace{Meta: make(map[string]string)}, budget: recording.BudgetOf(r)}
	p.labels = recording.NewLabeler(p.t, p.budget)
	if err := p.read(); err != nil {
		return nil, err
	}
	return p.finish()
}

// A profile holds what has been read of a file.
type profile struct {
	*scanner
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
	c, err := p.peek()
	switch {
	case err != nil:
		return err
	case c == '[':
		err = p.list()
	case c == '{':
		p.pos++
		err = p.object()
	default:
		err = p.syntax("{ or [")
	}
	if err != nil {
		return err
	}
	if !p.found {
		return errors.New("kineto: not a Chrome trace: no traceEvents")
	}
	return p.done()
}

func (p *profile) object() error {
	for first := true; ; first = false {
		key, ok, err := p.key(first)
		if err != nil || !ok {
			return err
		}
		switch string(key) {
		case "traceEvents":
			err = p.list()
		case "baseTimeNanoseconds":
			err = p.baseTime()
		default:
			err = p.skip()
		}
		if err != nil {
			return err
		}
	}
}

func (p *profile) baseTime() error {
	n, err := p.integer()
	if err == nil && (!n.ok || n.n < 0 || n.n > maxTime) {
		return p.fail(errors.New("baseTimeNanoseconds is no time"))
	}
	p.base = n.n
	return err
}

// list reads the list of events.
func (p *profile) list() error {
	if p.found {
		return p.fail(errors.New("a second traceEvents"))
	}
	p.found = true
	if err := p.expect('[', "the list of events"); err != nil {
		return err
	}
	var e event
	for first := true; ; first = false {
		if ok, err := p.more(first, ']'); !ok || err != nil {
			return err
		}
		if err := p.expect('{', "an event"); err != nil {
			return err
		}
		if err := p.event(&e); err != nil {
			return err
		}
		if err := p.take(&e); err != nil {
			return p.at(p.events, err)
		}
		p.events++
	}
}

func (p *profile) at(index int, err error) error {
	return fmt.Errorf("kineto: traceEvents[%d]: %w", index, err)
}

// take keeps e if it matters.
func (p *profile) take(e *event) error {
	ro := row{index: int32(p.events), thread: e.tid, class: e.class}
	var err error
	switch e.class {
	case classOther:
		return nil
	case classMemory, classOOM:
		if t := e.args[argDeviceType]; t.ok && t.n == 0 {
			p.skipped++
			return nil
		}
		if err = e.memory(&ro); err != nil {
			return err
		}
	case classMark:
		ro.label = p.labels.Label(string(e.name))
	case classLaunch, classJob:
		return p.device(e)
	}
	// A call that has not returned when profiling ends may have no dur.
	if ro.ns, ro.dur, err = e.span(e.class == classSync); err != nil {
		return err
	}
	p.rows = recording.Append(p.budget, p.rows, ro)
	return nil
}

// device keeps work of a device, or a call that may have launched some.
func (p *profile) device(e *event) error {
	id := e.args[argCorrelation]
	if !id.ok {
		return nil
	}
	ns, dur, err := e.span(e.class == classJob)
	if err != nil {
		return err
	}
	if e.class == classLaunch {
		p.launches = recording.Append(p.budget, p.launches, launch{correlation: id.n, ns: ns})
	} else {
		p.jobs = recording.Append(p.budget, p.jobs, job{correlation: id.n, begin: ns, end: ns + dur})
	}
	return nil
}

// memory fills the fields of a row about device memory.
func (e *event) memory(ro *row) error {
	device, err := e.get(argDevice, 0, int64(pressure.MaxDevices)-1)
	if err != nil {
		return err
	}
	ro.space = pressure.Device(int(device))
	ro.allocated, ro.reserved = e.total(argAllocated), e.total(argReserved)
	if ro.bytes, err = e.get(argBytes, -maxSize, maxSize); err != nil {
		return err
	}
	if ro.bytes == 0 || e.class == classOOM && ro.bytes < 0 {
		return fmt.Errorf("%s of %d Bytes", e.name, ro.bytes)
	}
	if e.class == classMemory {
		a := e.args[argAddr]
		if !a.ok && !a.big {
			return errors.New(`no integer "Addr" in args`)
		}
		ro.addr = uint64(a.n)
	}
	return nil
}

// total returns a running total, or -1 if the profile has none.
func (e *event) total(at int) int64 {
	if n, err := e.get(at, 0, maxSize); err == nil {
		return n
	}
	return -1
}

// meta says what was read; before allocates the objects that were live before the
// profile.
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
