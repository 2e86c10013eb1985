package parquetfile_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/parquetfile"
	"github.com/eagergc/eagergc/trace/samples"
)

func traces(t *testing.T) []*trace.Trace {
	t.Helper()
	real, err := samples.Open("gp")
	if err != nil {
		t.Fatal(err)
	}
	odd := &trace.Trace{Name: "odd", Meta: map[string]string{"a": "b"}, Labels: []string{"", "a,\"b\"\nc", "größer"}, Start: time.Unix(5, 7).UTC()}
	odd.Events = []trace.Event{
		{Time: -5, Kind: trace.Alloc, ID: 1<<64 - 1, Bytes: 1 << 61, Space: 255, Aux: 1},
		{Kind: trace.Free, ID: 1<<64 - 1, Bytes: 1 << 61, Space: 255, Aux: 1<<32 - 1, Stream: 1<<32 - 1},
		{Kind: trace.Sync, Duration: 1 << 62, Aux: 2},
	}
	return []*trace.Trace{real, odd, {Meta: map[string]string{}, Labels: []string{""}}}
}

// TestParquet reads the file back into record batches, and those as a stream.
func TestParquet(t *testing.T) {
	for _, tr := range traces(t) {
		var b, again bytes.Buffer
		for _, w := range []*bytes.Buffer{&b, &again} {
			if err := parquetfile.Write(w, tr); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Errorf("%s: other bytes the second time", tr.Name)
		}
		parquetFile, err := file.NewParquetReader(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		reader, err := pqarrow.NewFileReader(parquetFile, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		table, err := reader.ReadTable(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		schema, err := reader.Schema() // the table's has lost the metadata
		if err != nil {
			t.Fatal(err)
		}
		schema = unitless(schema)
		var stream bytes.Buffer
		w := ipc.NewWriter(&stream, ipc.WithSchema(schema))
		for batches := array.NewTableReader(table, 1<<16); batches.Next(); {
			rows := batches.RecordBatch()
			if err := w.Write(array.NewRecordBatch(schema, rows.Columns(), rows.NumRows())); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := arrowfile.Read(&stream)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Events, tr.Events) || !reflect.DeepEqual(got.Meta, tr.Meta) || got.Name != tr.Name || !got.Start.Equal(tr.Start) {
			t.Errorf("%s: the file reads as another trace: %q %v %v", tr.Name, got.Name, got.Meta, got.Start)
		}
		if len(tr.Events) > 0 {
			t.Logf("%s: %.2f bytes an event", tr.Name, float64(b.Len())/float64(len(tr.Events)))
		}
	}
}

// unitless returns a schema with the names that a stream has.
func unitless(s *arrow.Schema) *arrow.Schema {
	fields, metadata := s.Fields(), s.Metadata()
	for i := range fields {
		fields[i].Name = strings.TrimSuffix(fields[i].Name, "_ns")
	}
	return arrow.NewSchema(fields, &metadata)
}

func TestErrors(t *testing.T) {
	full := errors.New("disk full")
	for _, tr := range traces(t) {
		if err := parquetfile.Write(failing{full}, tr); !errors.Is(err, full) {
			t.Errorf("%s: %v", tr.Name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
