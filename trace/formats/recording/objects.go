package recording

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Objects gives the objects of a recording their identities, by their addresses. A program uses an
// address again and again, and each use is another object. Importers pass their place in the file,
// for errors. It is for one goroutine at a time.
type Objects struct {
	place  string // with a verb for a number: "line %d"
	budget *Budget
	last   map[address]object // the last one at an address, live or not
	ids    uint64
	bytes  int64 // of all
}

type address struct {
	space pressure.Space
	at    uint64
}

type object struct {
	ID    uint64
	Bytes int64
	Live  bool
	Place int // of the allocation, or of the free once it is freed
}

// addressBytes is the memory of an address.
const addressBytes = 112

// NewObjects returns Objects without any, which counts its memory in b. The format of a place in the
// file is place, such as "line %d".
func NewObjects(b *Budget, place string) *Objects {
	return &Objects{place: place, budget: b, last: make(map[address]object)}
}

// New counts an object without an address and gives it the next number. It is an error if
// all sizes add up to 2^62 bytes or more.
func (o *Objects) New(bytes int64) (id uint64, err error) {
	switch {
	case bytes < 0:
		return 0, fmt.Errorf("%d bytes", bytes)
	case bytes >= trace.MaxBytes-o.bytes:
		return 0, errors.New("the sizes so far add up to 2^62 bytes or more")
	}
	o.bytes += bytes
	o.ids++
	return o.ids, nil
}

// Alloc makes e the Alloc of a new object at an address of its space. It is an error if
// there is a live one.
func (o *Objects) Alloc(e *trace.Event, addr uint64, place int) (err error) {
	if was := o.last[address{e.Space, addr}]; was.Live {
		return fmt.Errorf("allocation of address %#x, which "+o.place+" allocated and nothing freed", addr, was.Place)
	}
	e.Kind = trace.Alloc
	e.ID, err = o.New(e.Bytes)
	o.put(e, addr, place, true)
	return err
}

// Drop makes e the Drop of the object at an address of its space, with the size of its allocation. If
// no object was allocated there, the object was live before the recording. Then Drop gives it a
// number and the size of e, and returns false. It is an error if the object was freed before.
func (o *Objects) Drop(e *trace.Event, addr uint64, place int) (known bool, err error) {
	was, known := o.last[address{e.Space, addr}]
	switch {
	case known && !was.Live:
		return true, fmt.Errorf("double free of address %#x, which "+o.place+" freed", addr, was.Place)
	case known:
		e.ID, e.Bytes = was.ID, was.Bytes
	default:
		e.ID, err = o.New(e.Bytes)
	}
	e.Kind = trace.Drop
	o.put(e, addr, place, false)
	return known, err
}

// Find returns the last object that was at an address.
func (o *Objects) Find(space pressure.Space, addr uint64) (was object, known bool) {
	was, known = o.last[address{space, addr}]
	return was, known
}

func (o *Objects) put(e *trace.Event, addr uint64, place int, live bool) {
	before := len(o.last)
	o.last[address{e.Space, addr}] = object{ID: e.ID, Bytes: e.Bytes, Live: live, Place: place}
	o.budget.Hold(int64(len(o.last)-before) * addressBytes)
}
