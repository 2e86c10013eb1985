package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// The writer writes this version of the schema. The reader also reads version 1, where kinds and
// spaces are numbers and times are integers.
const (
	version  = "2"
	version1 = "1"
)

// Keys of the schema's metadata. A key of a trace's Meta follows keyMeta.
const (
	keyVersion = "eagergc.version"
	keyName    = "eagergc.name"
	keyStart   = "eagergc.start" // RFC 3339; absent if unknown
	keyMeta    = "eagergc.meta."
)

// A form is how a column is stored.
type form uint8

const (
	_     form = iota
	words      // indices of a byte into a dictionary of texts
	nanoseconds
	int64s
	uint64s
	uint32s
	uint8s
	text // with nulls
)

func (f form) String() string {
	return [...]string{"another type", "words", "duration[ns]", "int64", "uint64", "uint32", "uint8", "utf8"}[f]
}

func (f form) width() int {
	switch f {
	case words, uint8s:
		return 1
	case uint32s:
		return 4
	}
	return 8
}

// plain is the form of version 1.
func (f form) plain() form {
	switch f {
	case nanoseconds:
		return int64s
	case words:
		return uint8s
	}
	return f
}

// The columns, in their order in the file.
const (
	colTime = iota
	colKind
	colSpace
	colID
	colBytes
	colDuration
	colStream
	colAux
	colLabel
	columns
)

// format has the name, form and metadata of each column, and the field of an event that it holds.
var format = [columns]struct {
	name  string
	form  form
	about []flat
	get   func(*Event) uint64
	set   func(*Event, uint64)
}{
	colTime: {"time", nanoseconds, pairs("unit", "ns", "from", "the start of the recording"),
		func(e *Event) uint64 { return uint64(e.Time) }, func(e *Event, v uint64) { e.Time = int64(v) }},
	colKind:  {"kind", words, nil, func(e *Event) uint64 { return uint64(e.Kind) }, func(e *Event, v uint64) { e.Kind = Kind(v) }},
	colSpace: {"space", words, nil, func(e *Event) uint64 { return uint64(e.Space) }, func(e *Event, v uint64) { e.Space = pressure.Space(v) }},
	colID:    {"id", uint64s, nil, func(e *Event) uint64 { return e.ID }, func(e *Event, v uint64) { e.ID = v }},
	colBytes: {"bytes", int64s, pairs("unit", "B", "of decision", "0 skip, 1 overlap, 2 block"),
		func(e *Event) uint64 { return uint64(e.Bytes) }, func(e *Event, v uint64) { e.Bytes = int64(v) }},
	colDuration: {"duration", nanoseconds, pairs("unit", "ns"),
		func(e *Event) uint64 { return uint64(e.Duration) }, func(e *Event, v uint64) { e.Duration = time.Duration(v) }},
	colStream: {"stream", uint32s, nil, func(e *Event) uint64 { return uint64(e.Stream) }, func(e *Event, v uint64) { e.Stream = uint32(v) }},
	colAux: {"aux", uint32s, pairs(
		"of free", "0 explicit, 1 cycle",
		"of cycle", "0 policy, 1 refusal, 2 natural, 3 explicit",
		"of refuse", "0 reap, 1 purge, 2 wait, 3 synchronize, 4 collect, 5 drop",
		"of alloc, sync, mark, decision", "the number of the label"),
		func(e *Event) uint64 { return uint64(e.Aux) }, func(e *Event, v uint64) { e.Aux = uint32(v) }},
	colLabel: {"label", text, nil, nil, nil},
}

// pairs are keys, each with its text.
func pairs(texts ...string) []flat {
	var all []flat
	for pair := range slices.Chunk(texts, 2) {
		all = append(all, flat{pair[0], pair[1]})
	}
	return all
}

// Values of the headers, from Message.fbs and Schema.fbs of the Arrow format 1.5:
// https://arrow.apache.org/docs/format/Columnar.html
const (
	schemaMessage = uint8(iota + 1)
	dictionaryMessage
	batchMessage

	metadataV5   = int16(4)
	codecZstd    = uint8(1) // LZ4 is 0
	unitNano     = int16(3)
	typeInt      = uint8(2)
	typeText     = uint8(5)
	typeDuration = uint8(18)
)

// buffersOf is the number of buffers of a column in a batch, by the column's type. It is 0 for nested
// types and for types without a fixed number.
var buffersOf = [...]int{2: 2, 3: 2, 4: 3, 5: 3, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 2, 15: 2, 18: 2, 19: 3, 20: 3}

// schemaOf returns the schema of a file with the Name, Start and Meta of t. Keys are sorted, so
// that the same trace gives the same bytes.
func schemaOf(t *Trace) flat {
	meta := pairs(keyVersion, version, keyName, t.Name)
	if !t.Start.IsZero() {
		meta = append(meta, flat{keyStart, t.Start.UTC().Format(time.RFC3339Nano)})
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		meta = append(meta, flat{keyMeta + key, t.Meta[key]})
	}
	var all []flat
	for c, column := range format {
		kind, of := typeInt, integer(column.form)
		var dictionary, about any
		switch column.form {
		case words:
			kind, of, dictionary = typeText, flat{}, flat{int64(c), integer(uint8s)}
		case text:
			kind, of = typeText, flat{}
		case nanoseconds:
			kind, of = typeDuration, flat{unitNano}
		}
		if column.about != nil {
			about = column.about
		}
		all = append(all, flat{column.name, column.form == text, kind, of, dictionary, []flat{}, about})
	}
	return flat{int16(0), all, meta}
}

func integer(f form) flat { return flat{int32(8 * f.width()), f == int64s} }

// formOf returns the form of a column of a file, the number of its dictionary, and the number of its
// buffers in a batch. The last is 0 if the reader does not read such columns.
func formOf(field table) (f form, dictionary int64, buffers int) {
	kind := uint8(field.number(2, 1, 0))
	of, _ := field.table(3)
	if d, ok := field.table(4); ok {
		if index, ok := d.table(1); ok && kind == typeText && integerOf(index) == uint8s {
			f = words
		}
		return f, d.number(0, 8, 0), 2
	}
	if int(kind) >= len(buffersOf) || field.list(5, 4).n > 0 {
		return 0, 0, 0
	}
	switch kind {
	case typeInt:
		f = integerOf(of)
	case typeText:
		f = text
	case typeDuration:
		if of.number(0, 2, 1) == int64(unitNano) {
			f = nanoseconds
		}
	}
	return f, 0, buffersOf[kind]
}

func integerOf(of table) form {
	bits, signed := of.number(0, 4, 0), of.number(1, 1, 0) != 0
	for _, f := range []form{int64s, uint64s, uint32s, uint8s} {
		if bits == int64(8*f.width()) && signed == (f == int64s) {
			return f
		}
	}
	return 0
}

// provenance fills the Name, Start and Meta from the metadata of a schema.
func (t *Trace) provenance(meta list, most int64) error {
	t.Meta = make(map[string]string)
	found, size := "", int64(0)
	for i := range meta.n {
		pair := meta.table(i)
		if size += int64(len(pair.text(0)) + len(pair.text(1))); size > most {
			return overBound("bytes of texts in the header", size, most)
		}
		key, value := string(pair.text(0)), string(pair.text(1))
		switch {
		case key == keyVersion:
			found = value
		case key == keyName:
			t.Name = value
		case key == keyStart:
			start, err := time.Parse(time.RFC3339Nano, value)
			if err != nil {
				return fmt.Errorf("schema metadata %s: %w", keyStart, err)
			}
			t.Start = start.UTC()
		case strings.HasPrefix(key, keyMeta):
			t.Meta[strings.TrimPrefix(key, keyMeta)] = value
		}
	}
	switch found {
	case version, version1:
		return nil
	case "":
		return fmt.Errorf("schema has no %s: not a trace", keyVersion)
	}
	return fmt.Errorf("version %q of the trace schema is not known (want %s or %s)", found, version1, version)
}

// A Codec packs and unpacks the columns of native files as frames of zstd. Its functions must be
// safe for concurrent use.
type Codec struct {
	Compress   func(dst, data []byte) []byte           // appends a frame to dst; nil: files are written as they are
	Decompress func(dst, frame []byte) ([]byte, error) // appends the unpacked frame, at most to the capacity of dst
}

var zstd atomic.Pointer[Codec]

// UseZstd makes this process read files that are packed with zstd, and pack its own files to about a
// tenth. Package trace/formats/zstd calls it when it is imported.
func UseZstd(c Codec) { zstd.Store(&c) }
