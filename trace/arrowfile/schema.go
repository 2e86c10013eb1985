package arrowfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/trace"
)

// Version is the version of the schema that is written. The file's metadata has it. A
// reader knows version 1 as well, whose kinds and spaces are numbers, and whose times
// are integers; it refuses any other.
const (
	Version  = "2"
	version1 = "1"
)

// Keys of the schema's metadata. A key of a trace's Meta follows keyMeta.
const (
	keyVersion = "eagergc.version"
	keyName    = "eagergc.name"
	keyStart   = "eagergc.start" // RFC 3339; absent if unknown
	keyMeta    = "eagergc.meta."
)

// The columns, in their order in the file. Their names and types are the format.
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

var fields = [columns]arrow.Field{
	colTime:     {Name: "time", Type: nanoseconds, Metadata: about("unit", "ns", "from", "the start of the recording")},
	colKind:     {Name: "kind", Type: words},
	colSpace:    {Name: "space", Type: words},
	colID:       {Name: "id", Type: arrow.PrimitiveTypes.Uint64},
	colBytes:    {Name: "bytes", Type: arrow.PrimitiveTypes.Int64, Metadata: about("unit", "B", "of decision", "0 skip, 1 overlap, 2 block")},
	colDuration: {Name: "duration", Type: nanoseconds, Metadata: about("unit", "ns")},
	colStream:   {Name: "stream", Type: arrow.PrimitiveTypes.Uint32},
	colAux: {Name: "aux", Type: arrow.PrimitiveTypes.Uint32, Metadata: about(
		"of free", "0 explicit, 1 cycle",
		"of cycle", "0 policy, 1 refusal, 2 natural, 3 explicit",
		"of refuse", "0 reap, 1 purge, 2 wait, 3 synchronize, 4 collect, 5 drop",
		"of alloc, sync, mark, decision", "the number of the label")},
	colLabel: {Name: "label", Type: arrow.BinaryTypes.String, Nullable: true},
}

var (
	nanoseconds = arrow.FixedWidthTypes.Duration_ns
	words       = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
)

// about returns metadata of keys, each with its text.
func about(pairs ...string) arrow.Metadata {
	var keys, texts []string
	for i := 0; i < len(pairs); i += 2 {
		keys, texts = append(keys, pairs[i]), append(texts, pairs[i+1])
	}
	return arrow.NewMetadata(keys, texts)
}

// plain is the type of a column that is stored as another: that of version 1.
func plain(t arrow.DataType) arrow.DataType {
	switch t {
	case nanoseconds:
		return arrow.PrimitiveTypes.Int64
	case words:
		return arrow.PrimitiveTypes.Uint8
	}
	return t
}

// wordsOf returns the words of the first n kinds or spaces, as a dictionary.
func wordsOf[T ~uint8](n int, word func(T) string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	for i := range n {
		b.Append(word(T(i)))
	}
	return b.NewArray()
}

// schemaOf returns the schema of a file with the Name, Start and Meta of t. Keys
// are sorted, so that the same trace gives the same bytes.
func schemaOf(t *trace.Trace) *arrow.Schema {
	keys, values := []string{keyVersion, keyName}, []string{Version, t.Name}
	if !t.Start.IsZero() {
		keys, values = append(keys, keyStart), append(values, t.Start.UTC().Format(time.RFC3339Nano))
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		keys, values = append(keys, keyMeta+key), append(values, t.Meta[key])
	}
	meta := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields[:], &meta)
}

// provenance fills t's Name, Start and Meta from the metadata of a schema.
func provenance(t *trace.Trace, s *arrow.Schema) error {
	md := s.Metadata()
	v, ok := md.GetValue(keyVersion)
	if !ok {
		return fmt.Errorf("schema has no %s: not a trace", keyVersion)
	}
	if v != Version && v != version1 {
		return fmt.Errorf("version %q of the trace schema is not known (want %s or %s)", v, version1, Version)
	}
	t.Meta = make(map[string]string)
	for i, key := range md.Keys() {
		value := md.Values()[i]
		switch {
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
	return nil
}

// locate returns the index of each column of the format in s. It ignores other
// columns.
func locate(s *arrow.Schema) (at [columns]int, err error) {
	for c, want := range fields {
		found := s.FieldIndices(want.Name)
		switch {
		case len(found) == 0:
			return at, fmt.Errorf("schema has no column %q", want.Name)
		case len(found) > 1:
			return at, fmt.Errorf("schema has %d columns %q", len(found), want.Name)
		}
		if got := s.Field(found[0]).Type; !arrow.TypeEqual(got, want.Type) && !arrow.TypeEqual(got, plain(want.Type)) {
			return at, fmt.Errorf("column %q is %v, want %v", want.Name, got, want.Type)
		}
		at[c] = found[0]
	}
	return at, nil
}
