package arrowfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/eagergc/eagergc/trace"
)

// The most that a record batch gets. Every row has the text of its label: that of
// a site has some hundred bytes, and a batch is held in memory.
const (
	batchRows = 1 << 16
	batchText = 4 << 20 // bytes of labels
)

var errClosed = errors.New("arrowfile: write after Close")

// A Writer writes a trace as it happens: each [Writer.WriteBatch] is whole in
// the underlying writer when it returns. It is for one goroutine at a time,
// and a [trace.BatchWriter]. After an error every call returns that error.
type Writer struct {
	to     *bufio.Writer
	ipc    *ipc.Writer
	table  *Table
	events int
	err    error
}

// NewWriter starts a file in w with the Name, Start and Meta of t, whose
// events and labels it ignores. The caller closes w after the Writer.
func NewWriter(w io.Writer, t *trace.Trace) (*Writer, error) {
	table, to := NewTable(t), bufio.NewWriterSize(w, 64<<10)
	f := &Writer{to: to, ipc: ipc.NewWriter(to, ipc.WithSchema(table.Schema()), ipc.WithZstd()), table: table}
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
		n := fits(events, labels)
		if err := f.write(events[:n], labels); err != nil {
			return err
		}
		events = events[n:]
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

// Close writes the end of the stream, without which a reader takes the file
// for cut off. It does not close the underlying writer.
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
