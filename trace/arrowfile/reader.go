package arrowfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/zstd"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/spill"
)

// ErrTruncated reports a file that is cut off: see [TruncatedError].
var ErrTruncated = errors.New("arrowfile: cut off")

// A TruncatedError says what could be read of a file that was cut off, because the
// recorded program was killed or a copy was not finished.
type TruncatedError struct {
	Batches int   // whole record batches that were read
	Events  int   // events in them
	Offset  int64 // byte offset of the first message that is not whole
	Err     error // what is missing
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("arrowfile: cut off at byte %d, after %d whole batches with %d events: %v", e.Offset, e.Batches, e.Events, e.Err)
}

func (e *TruncatedError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrTruncated].
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// Read reads a trace with the default [Bounds]. [trace.Sort] puts its events in
// order.
//
// If the file is cut off, Read returns the events of its whole batches together
// with a [TruncatedError]; the trace is nil if not even the schema is whole. With
// any other error the trace is nil, and the error gives the byte offset of the
// message.
func Read(r io.Reader) (*trace.Trace, error) { return Bounds{}.Read(r) }

// Read is like the function [Read], with the caller's bounds.
func (l Bounds) Read(r io.Reader) (*trace.Trace, error) {
	l = l.withDefaults()
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(l.Batch, unpackedFree))))
	if err != nil {
		return nil, fmt.Errorf("arrowfile: %w", err)
	}
	defer unpack.Close()
	d := &decoder{
		frames: frames{from: bufio.NewReaderSize(r, 64<<10), bounds: l, zstd: unpack},
		t:      new(trace.Trace),
	}
	d.store = spill.Of(r)
	d.events = trace.NewEvents(d.store)
	err = d.read()
	if err == nil {
		err = d.events.Err()
	}
	d.t.Events = d.events.Items()
	switch {
	case err != nil:
		return nil, fmt.Errorf("arrowfile: byte %d: %w", d.start, err)
	case d.cut == nil:
		return d.t, nil
	}
	cut := &TruncatedError{Batches: d.batches, Events: len(d.t.Events), Offset: d.offset, Err: d.cut}
	if !d.schema {
		return nil, cut
	}
	return d.t, cut
}

// A decoder turns messages into events.
type decoder struct {
	frames
	t       *trace.Trace
	events  *trace.Events
	schema  bool // it has been read
	batches int
	start   int64 // offset of the message being read
	labels  *trace.Labeler
	texts   int64 // bytes of the labels
	kinds   numbers
	spaces  numbers
}

func (d *decoder) read() (err error) {
	defer contain(&err)
	from, err := ipc.NewReaderFromMessageReader(&d.frames, ipc.WithAllocator(&d.guard))
	if d.cut != nil {
		return nil
	}
	if err != nil {
		return inner(err)
	}
	defer from.Release()
	at, err := locate(from.Schema())
	if err != nil {
		return err
	}
	if err := provenance(d.t, from.Schema()); err != nil {
		return err
	}
	d.schema, d.labels = true, trace.NewLabelerIn(d.t, d.store)
	for {
		d.start = d.offset
		batch, err := from.Read()
		if err == io.EOF || d.cut != nil { // the library has another error for a cut between dictionaries
			break
		}
		if err != nil {
			return inner(err)
		}
		if err := d.batch(batch, at); err != nil {
			return fmt.Errorf("batch %d: %w", d.batches, err)
		}
	}
	trace.Sort(d.events.Items())
	return nil
}

// batch appends the events of one record batch. The first batch is empty if the
// writer is ours: it comes with the schema.
func (d *decoder) batch(batch arrow.RecordBatch, at [columns]int) error {
	times := integers(batch.Column(at[colTime]))
	n := len(times) // what is there, not what the header says
	if total := int64(d.events.Len()) + int64(n); total > d.bounds.Events {
		return overBound("events", total, d.bounds.Events)
	}
	for c, i := range at {
		if batch.Column(i).NullN() > 0 && c != colLabel {
			return fmt.Errorf("column %q has nulls", fields[c].Name)
		}
	}
	kinds, err := d.kinds.of(batch.Column(at[colKind]), func(word string) (uint8, error) {
		k, err := trace.ParseKind(word)
		return uint8(k), err
	})
	if err != nil {
		return err
	}
	spaces, err := d.spaces.of(batch.Column(at[colSpace]), func(word string) (uint8, error) {
		s, err := pressure.ParseSpace(word)
		return uint8(s), err
	})
	if err != nil {
		return err
	}
	events := d.events.Grow(n)
	fill(times, events, func(e *trace.Event, v int64) { e.Time = v })
	fill(kinds, events, func(e *trace.Event, v uint8) { e.Kind = trace.Kind(d.kinds.table[v]) })
	fill(spaces, events, func(e *trace.Event, v uint8) { e.Space = pressure.Space(d.spaces.table[v]) })
	fill(batch.Column(at[colID]).(*array.Uint64).Uint64Values(), events, func(e *trace.Event, v uint64) { e.ID = v })
	fill(batch.Column(at[colBytes]).(*array.Int64).Int64Values(), events, func(e *trace.Event, v int64) { e.Bytes = v })
	fill(integers(batch.Column(at[colDuration])), events, func(e *trace.Event, v int64) { e.Duration = time.Duration(v) })
	fill(batch.Column(at[colStream]).(*array.Uint32).Uint32Values(), events, func(e *trace.Event, v uint32) { e.Stream = v })
	fill(batch.Column(at[colAux]).(*array.Uint32).Uint32Values(), events, func(e *trace.Event, v uint32) { e.Aux = v })
	if err := d.label(events, batch.Column(at[colLabel]).(*array.String)); err != nil {
		return err
	}
	if n > 0 {
		d.batches++
	}
	return nil
}

// fill stores one column in the events.
func fill[T any](column []T, events []trace.Event, set func(*trace.Event, T)) {
	column = column[:len(events)]
	for i := range events {
		set(&events[i], column[i])
	}
}

// label checks the kinds of new events, and sets the Aux of labelled ones to the
// number of the text. The number in the file does not count.
func (d *decoder) label(events []trace.Event, text *array.String) error {
	for i := range events {
		e := &events[i]
		if e.Kind.String() == "unknown" {
			return fmt.Errorf("event %d: unknown kind %d", d.events.Len()-len(events)+i, e.Kind)
		}
		if !e.Kind.Labelled() {
			continue
		}
		e.Aux = 0
		if text.IsNull(i) {
			continue
		}
		if err := d.number(e, text.Value(i)); err != nil {
			return fmt.Errorf("event %d: %w", d.events.Len()-len(events)+i, err)
		}
	}
	return nil
}

func (d *decoder) number(e *trace.Event, text string) error {
	if size := int64(len(text)); size > d.bounds.Label {
		return overBound("bytes of a label", size, d.bounds.Label)
	}
	if number, ok := d.labels.Lookup(text); ok {
		e.Aux = number
		return nil
	}
	if d.texts += int64(len(text)); d.texts > d.bounds.Labels {
		return overBound("bytes of labels", d.texts, d.bounds.Labels)
	}
	e.Aux = d.labels.Label(strings.Clone(text))
	return nil
}

// inner removes the text that the library puts around an error of frames.
func inner(err error) error {
	if cause := errors.Unwrap(err); cause != nil && strings.HasPrefix(err.Error(), "arrow/ipc: could not read message schema") {
		return cause
	}
	return err
}
