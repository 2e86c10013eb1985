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

// A form is how a column is stored: a type of Arrow and its header.
type form struct {
	kind  uint8
	of    flat
	width int // bytes of a number
}

var (
	words       = form{typeText, flat{}, 1} // the numbers are indices into a dictionary of texts
	text        = form{typeText, flat{}, 0} // with nulls
	nanoseconds = form{typeDuration, flat{unitNano}, 8}
	int64s      = form{typeInt, flat{int32(64), true}, 8}
	uint64s     = form{typeInt, flat{int32(64), false}, 8}
	uint32s     = form{typeInt, flat{int32(32), false}, 4}
	uint8s      = form{typeInt, flat{int32(8), false}, 1}
)

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
	for c := range format {
		all = append(all, field(c, version))
	}
	return flat{int16(0), all, meta}
}

// field is the header of a column in a version of the schema.
func field(c int, in string) flat {
	column := &format[c]
	form := column.form
	var dictionary, about any
	switch {
	case isWords(c) && in == version1:
		form = uint8s
	case isWords(c):
		dictionary = flat{int64(c), uint8s.of}
	case form.kind == typeDuration && in == version1:
		form = int64s
	}
	if column.about != nil {
		about = column.about
	}
	return flat{column.name, c == colLabel, form.kind, form.of, dictionary, []flat{}, about}
}

// isWords reports whether a column has words.
func isWords(c int) bool { return c == colKind || c == colSpace }

// provenance fills the Name, Start and Meta from the metadata of a schema, and returns its version.
func (t *Trace) provenance(meta list, most int64) (found string, err error) {
	t.Meta = make(map[string]string)
	size := int64(0)
	for i := range meta.n {
		pair := meta.table(i)
		if size += int64(len(pair.text(0)) + len(pair.text(1))); size > most {
			return "", overBound("bytes of texts in the header", size, most)
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
				return "", fmt.Errorf("schema metadata %s: %w", keyStart, err)
			}
			t.Start = start.UTC()
		case strings.HasPrefix(key, keyMeta):
			t.Meta[strings.TrimPrefix(key, keyMeta)] = value
		}
	}
	switch found {
	case version, version1:
		return found, nil
	case "":
		return "", fmt.Errorf("schema has no %s: not a trace", keyVersion)
	}
	return "", fmt.Errorf("version %q of the trace schema is not known (want %s or %s)", found, version1, version)
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
