package tabular_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/samples"
	"github.com/eagergc/eagergc/trace/tabular"
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

// fromCSV reads what WriteCSV writes.
func fromCSV(t *testing.T, file []byte) *trace.Trace {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], tabular.Columns) {
		t.Fatalf("columns %q", rows[0])
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tr := new(trace.Trace)
	labels := trace.NewLabeler(tr)
	for _, row := range rows[1:] {
		id, err := strconv.ParseUint(row[3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		space, err := pressure.ParseSpace(row[2])
		if err != nil {
			t.Fatal(err)
		}
		e := trace.Event{Time: number(row[0]), ID: id, Bytes: number(row[4]), Duration: time.Duration(number(row[5])),
			Stream: uint32(number(row[6])), Aux: uint32(number(row[7])), Space: space}
		for e.Kind.String() != row[1] {
			e.Kind++
		}
		if e.Kind.Labelled() {
			e.Aux = labels.Label(row[8])
		}
		tr.Record(e)
	}
	return tr
}

func TestCSV(t *testing.T) {
	for _, tr := range traces(t) {
		var b bytes.Buffer
		if err := tabular.WriteCSV(&b, tr); err != nil {
			t.Fatal(err)
		}
		if got := fromCSV(t, b.Bytes()); !slices.Equal(got.Events, tr.Events) || !slices.Equal(got.Labels, tr.Labels) {
			t.Errorf("%s: the file reads as another trace", tr.Name)
		}
	}
}

// TestParquet reads the file back into record batches, and those as a stream.
func TestParquet(t *testing.T) {
	for _, tr := range traces(t) {
		var b, again bytes.Buffer
		for _, w := range []*bytes.Buffer{&b, &again} {
			if err := tabular.WriteParquet(w, tr); err != nil {
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

func TestErrors(t *testing.T) {
	full := errors.New("disk full")
	for _, tr := range traces(t) {
		if err := tabular.WriteCSV(failing{full}, tr); !errors.Is(err, full) {
			t.Errorf("csv of %s: %v", tr.Name, err)
		}
		if err := tabular.WriteParquet(failing{full}, tr); !errors.Is(err, full) {
			t.Errorf("parquet of %s: %v", tr.Name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
