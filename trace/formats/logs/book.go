// Package logs reads logs of allocators and profilers with one event a line: RMM's log ([ReadRMM]),
// the hooks of CuPy ([ReadCuPy]) and recordings of heaptrack ([ReadHeaptrack]). The functions read
// unpacked text to its end, and count their memory in the budget of the reader
// ([recording.BudgetOf]). Errors give the line.
package logs

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A book takes the events of a log, with times in ns of any clock. If the log frees an address that it
// did not allocate, the object was live before the log began. The book allocates such objects before
// all other events.
type book struct {
	// slack is how far a time may go backwards, as it does when several threads
	// write to one log. Such an event gets the time of the event before it. A time
	// that goes back further is an error.
	slack time.Duration

	budget  *recording.Budget // counts the memory of the book
	objects *recording.Objects

	events, before, waits []trace.Event
	streams               map[uint64]uint32 // by handle or address
	now                   int64
	started               bool
	line                  int // of the event, for errors
	beforeBytes           int64
	corrections           int
}

// newBook returns the book of a log that r reads.
func newBook(r io.Reader, slack time.Duration) book {
	b := recording.BudgetOf(r)
	return book{slack: slack, budget: b, objects: recording.NewObjects(b, "line %d")}
}

// stream numbers the streams of a GPU in the order in which the log names them. Handles 0 and 1
// (cudaStreamLegacy) are the default stream, which has number 0.
func (b *book) stream(handle uint64) uint32 {
	if handle <= 1 {
		return 0
	}
	n, ok := b.streams[handle]
	if !ok {
		if b.streams == nil {
			b.streams = make(map[uint64]uint32)
		}
		n = uint32(len(b.streams) + 1)
		b.streams[handle] = n
		b.budget.Hold(32)
	}
	return n
}

// add takes an event without an object.
func (b *book) add(e trace.Event) error {
	if e.Bytes < 0 || e.Bytes >= trace.MaxBytes {
		return fmt.Errorf("%d bytes", e.Bytes)
	}
	if e.Duration < 0 {
		return fmt.Errorf("lasts %d ns", e.Duration)
	}
	if b.started && e.Time < b.now {
		if b.now-e.Time > int64(b.slack) {
			return fmt.Errorf("time goes backwards: %d ns after %d ns", e.Time, b.now)
		}
		e.Time = b.now
		b.corrections++
	}
	b.now, b.started = e.Time, true
	b.events = recording.Append(b.budget, b.events, e)
	return nil
}

// wait takes a wait of e.Duration that began at e.Time. Logs write a wait when it
// is over, so e.Time may be before the times of earlier events.
func (b *book) wait(e trace.Event) error {
	if e.Duration < 0 {
		return fmt.Errorf("lasts %d ns", e.Duration)
	}
	e.Kind = trace.Sync
	b.waits = recording.Append(b.budget, b.waits, e)
	return nil
}

// alloc takes the allocation of e.Bytes at an address of e.Space.
func (b *book) alloc(e trace.Event, addr uint64) error {
	if err := b.objects.Alloc(&e, addr, b.line); err != nil {
		return err
	}
	return b.add(e)
}

// free takes the free of an object of e.Bytes at an address of e.Space. It becomes a Drop,
// because the program has no use for the object any more.
func (b *book) free(e trace.Event, addr uint64) error {
	if was, _ := b.objects.Find(e.Space, addr); was.Live && was.Bytes != e.Bytes {
		return fmt.Errorf("free of %d bytes at address %#x, where line %d allocated %d", e.Bytes, addr, was.Place, was.Bytes)
	}
	known, err := b.objects.Drop(&e, addr, b.line)
	if err != nil {
		return err
	}
	if !known {
		b.before = recording.Append(b.budget, b.before, trace.Event{Kind: trace.Alloc, ID: e.ID, Bytes: e.Bytes, Space: e.Space})
		b.beforeBytes += e.Bytes
	}
	return b.add(e)
}

// finish puts the events into t, from time 0. In t.Meta it counts the objects that the book added and
// the times that it corrected. The epoch is the wall clock of time 0 of the log, or zero if it is
// unknown. A log without events is an error.
func (b *book) finish(t *trace.Trace, epoch time.Time) error {
	if len(b.events) == 0 {
		return errors.New("empty trace: no event is about memory")
	}
	trace.Sort(b.waits)
	first := b.events[0].Time
	if len(b.waits) > 0 {
		first = min(first, b.waits[0].Time)
	}
	for i := range b.before {
		b.before[i].Time = first
	}
	t.Start = epoch
	objects := len(b.before)
	t.Events = recording.Interleave(b.before, b.events, b.waits)
	if objects > 0 {
		t.Meta["live_before_objects"] = strconv.Itoa(objects)
		t.Meta["live_before_bytes"] = strconv.FormatInt(b.beforeBytes, 10)
	}
	if b.corrections > 0 {
		t.Meta["clock_corrections"] = strconv.Itoa(b.corrections)
	}
	recording.StartAtFirst(t)
	return nil
}

// lines calls each with every line of r, in order; an error gives the number of the line.
func (b *book) lines(r io.Reader, each func(line []byte) error) error {
	return recording.Lines(r, func(n int, line []byte) error {
		b.line = n
		return each(line)
	})
}
