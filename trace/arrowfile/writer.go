package arrowfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/trace"
)

// batchRows is the most rows that a record batch gets.
const batchRows = 1 << 16

var errClosed = errors.New("arrowfile: write after Close")

// A Writer writes a trace as it happens: each [Writer.WriteBatch] is whole in
// the underlying writer when it returns. It is for one goroutine at a time,
// and a [trace.BatchWriter]. After an error every call returns that error.
type Writer struct {
	to      *bufio.Writer
	ipc     *ipc.Writer
	rows    *array.RecordBuilder
	numbers map[string]uint32 // labels in the order in which the file has them
	events  int
	err     error
}

// NewWriter starts a file in w with the Name, Start and Meta of t, whose
// events and labels it ignores. The caller closes w after the Writer.
func NewWriter(w io.Writer, t *trace.Trace) (*Writer, error) {
	mem, schema, to := memory.DefaultAllocator, schemaOf(t), bufio.NewWriterSize(w, 64<<10)
	f := &Writer{
		to:      to,
		ipc:     ipc.NewWriter(to, ipc.WithSchema(schema), ipc.WithAllocator(mem), ipc.WithZstd()),
		rows:    array.NewRecordBuilder(mem, schema),
		numbers: map[string]uint32{"": 0},
	}
	// The library writes the schema with the first batch; a recording that is
	// killed before that should say at least what it was.
	if err := f.write(nil, nil); err != nil {
		return nil, err
	}
	return f, nil
}

// WriteBatch writes events, sorted or not, whose labels are numbered by labels
// as in [trace.Trace]. It keeps neither slice.
func (f *Writer) WriteBatch(events []trace.Event, labels []string) error {
	for len(events) > 0 {
		n := min(len(events), batchRows)
		if err := f.write(events[:n], labels); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

func (f *Writer) write(events []trace.Event, labels []string) error {
	if f.err != nil {
		return f.err
	}
	f.append(events, labels)
	batch := f.rows.NewRecordBatch()
	defer batch.Release()
	err := f.ipc.Write(batch)
	if err == nil {
		err = f.to.Flush()
	}
	if err != nil {
		f.err = fmt.Errorf("arrowfile: write at event %d: %w", f.events, err)
		return f.err
	}
	f.events += len(events)
	return nil
}

// append fills the columns, one after the other.
func (f *Writer) append(events []trace.Event, labels []string) {
	f.rows.Reserve(len(events))
	column(f, colTime, events, func(e *trace.Event) int64 { return e.Time })
	column(f, colKind, events, func(e *trace.Event) uint8 { return uint8(e.Kind) })
	column(f, colSpace, events, func(e *trace.Event) uint8 { return uint8(e.Space) })
	column(f, colID, events, func(e *trace.Event) uint64 { return e.ID })
	column(f, colBytes, events, func(e *trace.Event) int64 { return e.Bytes })
	column(f, colDuration, events, func(e *trace.Event) int64 { return int64(e.Duration) })
	column(f, colStream, events, func(e *trace.Event) uint32 { return e.Stream })
	view := trace.Trace{Labels: labels}
	column(f, colAux, events, func(e *trace.Event) uint32 {
		if !e.Kind.Labelled() {
			return e.Aux
		}
		return f.number(view.Label(*e))
	})
	text := f.rows.Field(colLabel).(*array.StringBuilder)
	for i := range events {
		if label := view.Label(events[i]); label != "" {
			text.Append(label)
		} else {
			text.AppendNull()
		}
	}
}

// number returns the file's number of a label: the order of first use.
func (f *Writer) number(label string) uint32 {
	n, ok := f.numbers[label]
	if !ok {
		n = uint32(len(f.numbers))
		f.numbers[label] = n
	}
	return n
}

// column appends one number of every event to column c.
func column[T any](f *Writer, c int, events []trace.Event, of func(*trace.Event) T) {
	b := f.rows.Field(c).(interface{ UnsafeAppend(T) })
	for i := range events {
		b.UnsafeAppend(of(&events[i]))
	}
}

// Close writes the end of the stream, without which a reader takes the file
// for cut off. It does not close the underlying writer.
func (f *Writer) Close() error {
	if f.err != nil {
		if f.err == errClosed {
			return nil
		}
		return f.err
	}
	f.rows.Release()
	err := f.ipc.Close()
	if err == nil {
		err = f.to.Flush()
	}
	f.err = errClosed
	if err != nil {
		f.err = fmt.Errorf("arrowfile: end of stream: %w", err)
		return f.err
	}
	return nil
}

// Write writes t to w. The same trace gives the same bytes, and a trace that
// was read back gives them too. Labels that no event refers to are left out.
func Write(w io.Writer, t *trace.Trace) error {
	f, err := NewWriter(w, t)
	if err != nil {
		return err
	}
	if err := f.WriteBatch(t.Events, t.Labels); err != nil {
		return err
	}
	return f.Close()
}
