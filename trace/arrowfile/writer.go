package arrowfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/eagergc/eagergc/trace"
)

// The largest record batch. A batch is held in memory, and every row has the text
// of its label: that of an allocation site has some hundred bytes.
const (
	batchRows = 2 << 10 // a file that is cut off loses at most the last of its batches
	batchText = 4 << 20 // bytes of labels
)

var errClosed = errors.New("arrowfile: write after Close")

// A Writer writes a trace batch by batch. When [Writer.WriteBatch] returns, the
// whole batch is in the underlying writer. A Writer is a [trace.BatchWriter], for
// one goroutine at a time. After an error every call returns that error.
type Writer struct {
	to     *bufio.Writer
	ipc    *ipc.Writer
	table  *Table
	events int
	err    error
}

// NewWriter starts a file in w with the Name, Start and Meta of t; it ignores the
// events and labels of t. The caller closes w after the Writer.
func NewWriter(w io.Writer, t *trace.Trace) (*Writer, error) {
	table, to := NewTable(t), bufio.NewWriterSize(w, 64<<10)
	f := &Writer{to: to, ipc: ipc.NewWriter(to, ipc.WithSchema(table.Schema()), ipc.WithZstd()), table: table}
	// The library writes the schema with the first batch. Write an empty one now, so
	// that a recording that is killed early has at least its provenance.
	if err := f.write(nil, nil); err != nil {
		return nil, err
	}
	return f, nil
}

// WriteBatch writes events, sorted or not. The Aux of a labelled event is an index
// into labels, as in a [trace.Trace]. WriteBatch keeps neither slice. Its error is a
// [trace.PartError].
func (f *Writer) WriteBatch(events []trace.Event, labels []string) error {
	for written := 0; written < len(events); {
		n := fits(events[written:], labels)
		if err := f.write(events[written:written+n], labels); err != nil {
			return &trace.PartError{Written: written, Err: err}
		}
		written += n
	}
	return nil
}

// fits returns how many of the first events make one batch.
func fits(events []trace.Event, labels []string) int {
	view, text := trace.Trace{Labels: labels}, 0
	for i := range events[:min(len(events), batchRows)] {
		if text += len(view.Label(events[i])); text > batchText && i > 0 {
			return i
		}
	}
	return min(len(events), batchRows)
}

func (f *Writer) write(events []trace.Event, labels []string) error {
	if f.err != nil {
		return f.err
	}
	batch := f.table.Batch(events, labels)
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

// Close writes the end mark of the stream; without it the file counts as cut off.
// It does not close the underlying writer.
func (f *Writer) Close() error {
	if f.err != nil {
		if f.err == errClosed {
			return nil
		}
		return f.err
	}
	f.table.Release()
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

// Write writes t to w. The same trace always gives the same bytes, also after it
// was written and read back. Labels that no event refers to are left out.
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
