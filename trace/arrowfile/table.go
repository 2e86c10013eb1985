package arrowfile

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Table turns events into record batches with the columns of the format. Package
// parquetfile uses it too. It is for one goroutine at a time.
type Table struct {
	schema  *arrow.Schema
	columns [columns]array.Builder
	words   [columns]arrow.Array // the dictionaries of those that have one
	numbers map[string]uint32    // labels in the order in which the file has them
}

// NewTable returns a Table whose schema has the Name, Start and Meta of t. The
// caller must call Release.
func NewTable(t *trace.Trace) *Table {
	b := &Table{schema: schemaOf(t), numbers: map[string]uint32{"": 0}}
	for c, field := range fields {
		b.columns[c] = array.NewBuilder(memory.DefaultAllocator, plain(field.Type))
	}
	b.words[colKind] = wordsOf(trace.Kinds, trace.Kind.String)
	b.words[colSpace] = wordsOf(usualSpaces, pressure.Space.String)
	return b
}

// usualSpaces is the number of spaces whose words a file begins with. The first event
// of another brings the words of all, in a dictionary that replaces the first.
const (
	usualSpaces = 11 // of the host, and of 8 devices
	allSpaces   = 256
)

func (b *Table) knowSpaces(events []trace.Event) {
	for i := range events {
		if int(events[i].Space) >= b.words[colSpace].Len() {
			b.words[colSpace].Release()
			b.words[colSpace] = wordsOf(allSpaces, pressure.Space.String)
		}
	}
}

// Schema returns the columns and their metadata.
func (b *Table) Schema() *arrow.Schema { return b.schema }

// Release frees the memory of the table.
func (b *Table) Release() {
	for c := range b.columns {
		b.columns[c].Release()
		if b.words[c] != nil {
			b.words[c].Release()
		}
	}
}

// Batch returns events as a record batch; the caller releases it. The Aux of a
// labelled event is an index into labels, as in a [trace.Trace]. The file numbers
// labels in the order of their first use.
func (b *Table) Batch(events []trace.Event, labels []string) arrow.RecordBatch {
	b.knowSpaces(events)
	for _, c := range b.columns {
		c.Reserve(len(events))
	}
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
	text := b.columns[colLabel].(*array.StringBuilder)
	for i := range events {
		if label := view.Label(events[i]); label != "" {
			text.Append(label)
		} else {
			text.AppendNull()
		}
	}
	return b.batch(int64(len(events)))
}

// batch returns what was appended since the last call.
func (b *Table) batch(rows int64) arrow.RecordBatch {
	list := make([]arrow.Array, columns)
	for c, field := range fields {
		list[c] = b.columns[c].NewArray()
		switch field.Type {
		case words:
			list[c] = swap(list[c], func(plain arrow.Array) arrow.Array { return array.NewDictionaryArray(words, plain, b.words[c]) })
		case nanoseconds:
			list[c] = swap(list[c], func(plain arrow.Array) arrow.Array {
				d := plain.Data()
				same := array.NewData(nanoseconds, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
				defer same.Release()
				return array.NewDurationData(same)
			})
		}
	}
	defer func() {
		for _, column := range list {
			column.Release()
		}
	}()
	return array.NewRecordBatch(b.schema, list, rows)
}

// swap returns what an array is made into, and releases the array.
func swap(a arrow.Array, into func(arrow.Array) arrow.Array) arrow.Array {
	defer a.Release()
	return into(a)
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
	to := b.columns[c].(interface{ UnsafeAppend(T) })
	for i := range events {
		to.UnsafeAppend(of(&events[i]))
	}
}
