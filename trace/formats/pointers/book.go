// Package pointers turns events about addresses into events about objects, for
// importers of logs. A program uses an address again and again; each use is
// another object.
package pointers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/spill"
)

// A Book takes the events of a log, with times in ns of any clock, and gives
// objects their identities. If the log frees an address that it did not allocate,
// the object was there before the log began: the book allocates it before all
// other events. The zero value is ready to use, by one goroutine at a time.
type Book struct {
	// Slack is how far a time may go backwards, as it does when several threads
	// write to one log. Such an event gets the time of the event before it. A time
	// that goes back further is an error.
	Slack time.Duration

	// Store counts what the book holds; nil counts nothing.
	Store *spill.Store

	events, before, waits *trace.Events
	objects               map[place]object // by address: the last one there, live or not
	now                   int64
	started               bool
	line                  int // of the event, for errors
	ids                   uint64
	gross                 int64
	beforeBytes           int64
	corrections           int
}

type place struct {
	space pressure.Space
	addr  uint64
}

// An object is the last one seen at an address.
type object struct {
	id    uint64
	bytes int64
	live  bool
	line  int // of the allocation, or of the free once it is freed
}

// lists makes the lists for the first event.
func (b *Book) lists() {
	if b.events == nil {
		b.events, b.before, b.waits = trace.NewEvents(b.Store), trace.NewEvents(b.Store), trace.NewEvents(b.Store)
	}
}

// objectBytes is what an address takes in the book.
const objectBytes = 112

// put remembers the last object at an address.
func (b *Book) put(space pressure.Space, addr uint64, o object) {
	before := len(b.objects)
	b.objects[place{space, addr}] = o
	b.Store.Hold(int64(len(b.objects)-before) * objectBytes)
}

// Line sets the line of the log that the next events come from, for errors.
func (b *Book) Line(n int) { b.line = n }

// Add takes an event that is about no object.
func (b *Book) Add(e trace.Event) error {
	if e.Bytes < 0 || e.Bytes >= trace.MaxBytes {
		return fmt.Errorf("%d bytes", e.Bytes)
	}
	if e.Duration < 0 {
		return fmt.Errorf("lasts %d ns", e.Duration)
	}
	if b.started && e.Time < b.now {
		if b.now-e.Time > int64(b.Slack) {
			return fmt.Errorf("time goes backwards: %d ns after %d ns", e.Time, b.now)
		}
		e.Time = b.now
		b.corrections++
	}
	b.now, b.started = e.Time, true
	b.lists()
	b.events.Append(e)
	return nil
}

// Wait takes a wait of e.Duration that began at e.Time. Logs write a wait when it
// is over, so e.Time may be before the times of earlier events.
func (b *Book) Wait(e trace.Event) error {
	if e.Duration < 0 {
		return fmt.Errorf("lasts %d ns", e.Duration)
	}
	e.Kind = trace.Sync
	b.lists()
	b.waits.Append(e)
	return nil
}

// Alloc takes the allocation of e.Bytes at an address of e.Space.
func (b *Book) Alloc(e trace.Event, addr uint64) error {
	if o := b.at(e.Space, addr); o.live {
		return fmt.Errorf("allocation at address %#x, which line %d allocated and nothing freed", addr, o.line)
	}
	if err := b.count(e.Bytes); err != nil {
		return err
	}
	b.ids++
	e.Kind, e.ID = trace.Alloc, b.ids
	b.put(e.Space, addr, object{id: e.ID, bytes: e.Bytes, live: true, line: b.line})
	return b.Add(e)
}

// Free takes the free of the object at an address of e.Space. It becomes a Drop,
// because the program has no use for the object any more. e.Bytes is the size in
// the log, or -1 if the log has none.
func (b *Book) Free(e trace.Event, addr uint64) error {
	o := b.at(e.Space, addr)
	switch {
	case !o.live && o.id != 0:
		return fmt.Errorf("double free of address %#x, which line %d freed", addr, o.line)
	case !o.live && e.Bytes < 0:
		return fmt.Errorf("free of address %#x, which was never allocated", addr)
	case !o.live:
		if err := b.count(e.Bytes); err != nil {
			return err
		}
		b.ids++
		o = object{id: b.ids, bytes: e.Bytes}
		b.lists()
		b.before.Append(trace.Event{Kind: trace.Alloc, ID: o.id, Bytes: o.bytes, Space: e.Space})
		b.beforeBytes += o.bytes
	case e.Bytes >= 0 && e.Bytes != o.bytes:
		return fmt.Errorf("free of %d bytes at address %#x, where line %d allocated %d", e.Bytes, addr, o.line, o.bytes)
	}
	b.put(e.Space, addr, object{id: o.id, bytes: o.bytes, line: b.line})
	e.Kind, e.ID, e.Bytes = trace.Drop, o.id, o.bytes
	return b.Add(e)
}

// Live reports whether there is an object at an address.
func (b *Book) Live(space pressure.Space, addr uint64) bool { return b.at(space, addr).live }

func (b *Book) at(space pressure.Space, addr uint64) object {
	if b.objects == nil {
		b.objects = make(map[place]object)
	}
	return b.objects[place{space, addr}]
}

// count adds to the sum of all sizes, which must stay below 2^62.
func (b *Book) count(bytes int64) error {
	if bytes < 0 || bytes >= trace.MaxBytes-b.gross {
		return fmt.Errorf("%d bytes: negative, or the sizes so far add up to over 2^62", bytes)
	}
	b.gross += bytes
	return nil
}

// Finish puts the events into t, from time 0, and counts in t.Meta what the book
// had to add or correct. epoch is the wall clock of time 0 of the log; zero if
// unknown. A log without events is an error.
func (b *Book) Finish(t *trace.Trace, epoch time.Time) error {
	if b.events == nil || b.events.Len() == 0 {
		return errors.New("empty trace: no event is about memory")
	}
	waits, before := b.waits.Items(), b.before.Items()
	trace.Sort(waits)
	first := b.events.Items()[0].Time
	if len(waits) > 0 {
		first = min(first, waits[0].Time)
	}
	for i := range before {
		before[i].Time = first
	}
	t.Start = epoch
	objects := len(before)
	events := trace.Interleave(b.before, b.events, b.waits)
	if err := events.Err(); err != nil {
		return err
	}
	t.Events = events.Items()
	if t.Meta == nil {
		t.Meta = make(map[string]string)
	}
	if objects > 0 {
		t.Meta["live_before_objects"] = strconv.Itoa(objects)
		t.Meta["live_before_bytes"] = strconv.FormatInt(b.beforeBytes, 10)
	}
	if b.corrections > 0 {
		t.Meta["clock_corrections"] = strconv.Itoa(b.corrections)
	}
	t.StartAtFirst()
	return nil
}

// maxLine bounds the lines of a log, in bytes.
const maxLine = 1 << 20

// Lines calls each with every line of r, in order. An error, of each or of
// reading, gives the number of the line, from 1.
func (b *Book) Lines(r io.Reader, each func(line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		b.Line(n)
		if err := each(lines.Bytes()); err != nil {
			if !lines.Scan() && lines.Err() != nil { // the line is not whole
				err = lines.Err()
			}
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}
