package arrowfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/eagergc/eagergc/trace"
)

// Version is the version of the schema. The file's metadata has it, and a reader
// refuses any other.
const Version = "1"

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
	colTime:     {Name: "time", Type: arrow.PrimitiveTypes.Int64},
	colKind:     {Name: "kind", Type: arrow.PrimitiveTypes.Uint8},
	colSpace:    {Name: "space", Type: arrow.PrimitiveTypes.Uint8},
	colID:       {Name: "id", Type: arrow.PrimitiveTypes.Uint64},
	colBytes:    {Name: "bytes", Type: arrow.PrimitiveTypes.Int64},
	colDuration: {Name: "duration", Type: arrow.PrimitiveTypes.Int64},
	colStream:   {Name: "stream", Type: arrow.PrimitiveTypes.Uint32},
	colAux:      {Name: "aux", Type: arrow.PrimitiveTypes.Uint32},
	colLabel:    {Name: "label", Type: arrow.BinaryTypes.String, Nullable: true},
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
	version, ok := md.GetValue(keyVersion)
	if !ok {
		return fmt.Errorf("schema has no %s: not a trace", keyVersion)
	}
	if version != Version {
		return fmt.Errorf("version %q of the trace schema is not known (want %s)", version, Version)
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
		if got := s.Field(found[0]).Type; !arrow.TypeEqual(got, want.Type) {
			return at, fmt.Errorf("column %q is %v, want %v", want.Name, got, want.Type)
		}
		at[c] = found[0]
	}
	return at, nil
}
