// Package umpire reads the replay logs of Umpire, LLNL's memory manager: what a
// program writes if UMPIRE_REPLAY is set, one JSON object per line. There are two
// forms, and both are read: since version 2022 a line has a category, a name and
// arguments; before that it had an event and a payload.
//
//	allocate      Alloc
//	deallocate    Drop
//	reallocate    Drop and Alloc, unless the log also has its deallocate and allocate
//
// Other operations do not change what the program holds. The space of an object is
// that of its allocator's resource: HOST, PINNED, UM (managed), DEVICE and
// DEVICE_CONST (device 0), DEVICE::n. Allocations of no bytes are left out, because
// several of them may have the same address.
package umpire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/pointers"
	"github.com/eagergc/eagergc/trace/spill"
)

// Detect reports whether head, the first bytes of a file, begins a replay log.
// Lines that begin with # may come first.
func Detect(head []byte) bool {
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		return bytes.HasPrefix(line, []byte(`{"category":`)) ||
			bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"kind":"replay"`))
	}
	return false
}

// A row is one line of either form.
type row struct {
	Time int64 `json:"timestamp"` // ns since 1970

	Category string `json:"category"`
	Name     string `json:"name"`
	Numbers  struct {
		Size int64 `json:"size"`
	} `json:"numeric_args"`
	Texts struct {
		Allocator string `json:"allocator_ref"`
		Pointer   string `json:"pointer"`
		Current   string `json:"current_ptr"`
		New       string `json:"new_ptr"`
		Arg0      any    `json:"arg0"`
	} `json:"string_args"`
	Tags struct {
		Allocator string `json:"allocator_name"`
	} `json:"tags"`

	Event   string `json:"event"` // the older form
	Payload struct {
		Name      string `json:"name"`
		Allocator string `json:"allocator_name"`
		Ref       string `json:"allocator_ref"`
		Pointer   string `json:"memory_ptr"`
		Size      int64  `json:"size"`
		Args      []any  `json:"args"`
	} `json:"payload"`
	Result json.RawMessage `json:"result"`
}

// Read reads a log from r, which is not packed, to its end. An error gives the
// line.
func Read(r io.Reader) (*trace.Trace, error) {
	l := log{
		book:   pointers.Book{Slack: time.Second, Store: spill.Of(r)},
		spaces: make(map[string]pressure.Space),
		at:     make(map[uint64]pressure.Space),
		empty:  make(map[uint64]int),
	}
	err := l.book.Lines(r, func(line []byte) error {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			return nil
		}
		var ro row
		if err := json.Unmarshal(line, &ro); err != nil {
			return err
		}
		return l.row(&ro)
	})
	t := &trace.Trace{Meta: map[string]string{"source": "Umpire replay log", "clock": "wall clock, ns"}, Labels: []string{""}}
	if err == nil {
		err = l.book.Finish(t, time.Unix(0, 0).UTC())
	}
	if err != nil {
		return nil, fmt.Errorf("umpire: %w", err)
	}
	return t, nil
}

type log struct {
	book    pointers.Book
	spaces  map[string]pressure.Space // of an allocator, by its reference and by its name
	at      map[uint64]pressure.Space // where the object at an address is
	empty   map[uint64]int            // allocations of no bytes at an address
	pending *change
}

// A change is a reallocate whose first line has been read, but not its second.
type change struct {
	pointer, allocator string
	size               int64
	nested             bool // the log has its allocate or deallocate too
}

func (l *log) row(ro *row) error {
	if ro.Time < 0 || ro.Time > maxTime {
		return fmt.Errorf("timestamp %d is out of range", ro.Time)
	}
	if ro.Event != "" {
		return l.older(ro)
	}
	texts := &ro.Texts
	switch ro.Name {
	case "":
		return errors.New("neither a name nor an event")
	case "make_memory_resource":
		l.name(texts.Allocator, ro.Tags.Allocator, ro.Tags.Allocator)
	case "make_allocator":
		base, _ := texts.Arg0.(string)
		l.name(texts.Allocator, ro.Tags.Allocator, base)
	case "allocate":
		return l.alloc(ro.Time, texts.Allocator, texts.Pointer, ro.Numbers.Size)
	case "deallocate":
		return l.free(ro.Time, texts.Pointer)
	case "reallocate":
		return l.realloc(ro)
	}
	return nil
}

const maxTime = int64(1) << 62 // ns since 1970: the year 2116

// older takes a row of the older form. A call that returns something has two rows,
// and only the second has the result.
func (l *log) older(ro *row) error {
	p := &ro.Payload
	var result struct {
		Allocator string `json:"allocator_ref"`
		Pointer   string `json:"memory_ptr"`
	}
	var text string
	if len(ro.Result) > 0 && json.Unmarshal(ro.Result, &result) != nil {
		if err := json.Unmarshal(ro.Result, &text); err != nil {
			return fmt.Errorf("result: %w", err)
		}
	}
	switch ro.Event {
	case "makeMemoryResource":
		l.name(text, p.Name, p.Name)
	case "makeAllocator":
		if result.Allocator != "" && len(p.Args) > 0 {
			base, _ := p.Args[0].(string)
			l.name(result.Allocator, p.Allocator, base)
		}
	case "allocate":
		if result.Pointer != "" {
			return l.alloc(ro.Time, p.Ref, result.Pointer, p.Size)
		}
	case "deallocate":
		return l.free(ro.Time, p.Pointer)
	}
	return nil
}

// name remembers an allocator: base is the allocator or resource that it takes its
// memory from.
func (l *log) name(ref, name, base string) {
	space, ok := l.spaces[base]
	if !ok {
		space = resource(base)
	}
	l.spaces[ref], l.spaces[name] = space, space
	l.book.Store.Hold(int64(len(ref)+len(name)) + 128)
}

// resource returns the space of one of Umpire's resources.
func resource(name string) pressure.Space {
	switch {
	case name == "PINNED":
		return pressure.Pinned
	case name == "UM":
		return pressure.Managed
	case strings.HasPrefix(name, "DEVICE"):
		if _, digits, ok := strings.Cut(name, "::"); ok {
			if n, err := strconv.Atoi(digits); err == nil && n >= 0 && n < pressure.MaxDevices {
				return pressure.Device(n)
			}
		}
		return pressure.Device(0)
	}
	return pressure.Host
}

func (l *log) alloc(now int64, allocator, pointer string, size int64) error {
	addr, err := address(pointer)
	if err != nil || addr == 0 {
		return err
	}
	if l.pending != nil {
		l.pending.nested = true
	}
	if size == 0 {
		l.empty[addr]++
		l.book.Store.Hold(32)
		return nil
	}
	if space, ok := l.at[addr]; ok && l.book.Live(space, addr) {
		return fmt.Errorf("allocation at address %#x, where there is an object", addr)
	}
	space := l.spaces[allocator]
	l.at[addr] = space
	l.book.Store.Hold(32)
	return l.book.Alloc(trace.Event{Time: now, Space: space, Bytes: size}, addr)
}

func (l *log) free(now int64, pointer string) error {
	addr, err := address(pointer)
	if err != nil || addr == 0 {
		return err
	}
	if l.pending != nil {
		l.pending.nested = true
	}
	space := l.at[addr]
	if !l.book.Live(space, addr) && l.empty[addr] > 0 {
		l.empty[addr]--
		return nil
	}
	return l.book.Free(trace.Event{Time: now, Space: space, Bytes: -1}, addr)
}

// realloc takes one of the two lines of a reallocate. The first says what is asked
// for. The second has the new pointer; the lines between are what it did.
func (l *log) realloc(ro *row) error {
	if ro.Texts.New == "" {
		l.pending = &change{pointer: ro.Texts.Current, allocator: ro.Texts.Allocator, size: ro.Numbers.Size}
		return nil
	}
	c := l.pending
	l.pending = nil
	if c == nil {
		return errors.New("end of a reallocate that has not begun")
	}
	if c.nested {
		return nil
	}
	if err := l.free(ro.Time, c.pointer); err != nil {
		return err
	}
	return l.alloc(ro.Time, c.allocator, ro.Texts.New, c.size)
}

// address reads a pointer as C++ prints it.
func address(text string) (uint64, error) {
	if text == "" || text == "(nil)" || text == "nullptr" {
		return 0, nil
	}
	addr, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("pointer: %w", err)
	}
	return addr, nil
}
