package arrowfile

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/trace"
)

// A Table turns events into record batches with the columns of the format. Package
// parquetfile uses it too. It is for one goroutine at a time.
type Table struct {
	rows    *array.RecordBuilder
	numbers map[string]uint32 // labels in the order in which the file has them
}

// NewTable returns a Table whose schema has the Name, Start and Meta of t. The
// caller must call Release.
func NewTable(t *trace.Trace) *Table {
	return &Table{
		rows:    array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(t)),
		numbers: map[string]uint32{"": 0},
	}
}

// Schema returns the columns and their metadata.
func (b *Table) Schema() *arrow.Schema { return b.rows.Schema() }

// Release frees the memory of the table.
func (b *Table) Release() { b.rows.Release() }

// Batch returns events as a record batch; the caller releases it. The Aux of a
// labelled event is an index into labels, as in a [trace.Trace]. The file numbers
// labels in the order of their first use.
func (b *Table) Batch(events []trace.Event, labels []string) arrow.RecordBatch {
	b.rows.Reserve(len(events))
	column(b, colTime, events, func(e *trace.Event) int64 { return e.Time })
	column(b, colKind, events, func(e *trace.Event) uint8 { return uint8(e.Kind) })
	column(b, colSpace, events, func(e *trace.Event) uint8 { return uint8(e.Space) })
	column(b, colID, events, func(e *trace.Event) uint64 { return e.ID })
	column(b, colBytes, events, func(e *trace.Event) int64 { return e.Bytes })
	column(b, colDuration, events, func(e *trace.Event) int64 { return int64(e.Duration) })
	column(b, colStream, events, func(e *trace.Event) uint32 { return e.Stream })
	view := trace.Trace{Labels: labels}
	column(b, colAux, events, func(e *trace.Event) uint32 {
		if !e.Kind.Labelled() {
			return e.Aux
		}
		return b.number(view.Label(*e))
	})
	text := b.rows.Field(colLabel).(*array.StringBuilder)
	for i := range events {
		if label := view.Label(events[i]); label != "" {
			text.Append(label)
		} else {
			text.AppendNull()
		}
	}
	return b.rows.NewRecordBatch()
}

// number returns the number of a label in the file.
func (b *Table) number(label string) uint32 {
	n, ok := b.numbers[label]
	if !ok {
		n = uint32(len(b.numbers))
		b.numbers[label] = n
	}
	return n
}

// column appends one number of every event to column c.
func column[T any](b *Table, c int, events []trace.Event, of func(*trace.Event) T) {
	to := b.rows.Field(c).(interface{ UnsafeAppend(T) })
	for i := range events {
		to.UnsafeAppend(of(&events[i]))
	}
}
