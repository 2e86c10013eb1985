package arrow_test

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// These tests hold the native files of package trace, which it reads and writes by
// itself, to Apache Arrow.

// varied is a trace with every kind, spaces beyond the usual ones, and labels.
func varied(n int) *trace.Trace {
	tr := &trace.Trace{Name: "varied", Start: time.Unix(1e9, 7).UTC(), Meta: map[string]string{"app": "a test"}, Labels: []string{"", "unused", "größer", "loss.item()"}}
	for i := range n {
		e := trace.Event{Time: int64(i) * 1000, ID: uint64(i) << 40, Bytes: int64(i%7) << 20, Duration: time.Duration(i), Stream: uint32(i % 3),
			Kind: trace.Kind(i % (1 + int(trace.Decision))), Space: pressure.Space(i % 40), Aux: uint32(i % 4)}
		if e.Kind.Labelled() {
			e.Aux = uint32(i%2) * uint32(2+i%4/2)
		}
		tr.Record(e)
	}
	return tr
}

func native(t *testing.T, tr *trace.Trace) *ipc.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestArrowReads: each value of each column is what the trace has.
func TestArrowReads(t *testing.T) {
	tr, at := varied(5000), 0
	r := native(t, tr)
	numbers := map[string]uint32{"": 0}
	for r.Next() {
		b := r.RecordBatch()
		if err := array.ValidateRecord(b); err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			e, label := tr.Events[at], tr.Label(tr.Events[at])
			if _, ok := numbers[label]; !ok {
				numbers[label] = uint32(len(numbers))
			}
			if e.Kind.Labelled() {
				e.Aux = numbers[label]
			}
			null := label == ""
			want := []any{arrow.Duration(e.Time), e.Kind.String(), e.Space.String(), e.ID, e.Bytes, arrow.Duration(e.Duration), e.Stream, e.Aux, label}
			got := []any{b.Column(0).(*array.Duration).Value(i), word(b.Column(1), i), word(b.Column(2), i), b.Column(3).(*array.Uint64).Value(i),
				b.Column(4).(*array.Int64).Value(i), b.Column(5).(*array.Duration).Value(i), b.Column(6).(*array.Uint32).Value(i),
				b.Column(7).(*array.Uint32).Value(i), b.Column(8).(*array.String).Value(i)}
			if !reflect.DeepEqual(got, want) || b.Column(8).IsNull(i) != null {
				t.Fatalf("event %d: Arrow has %v, want %v", at, got, want)
			}
			at++
		}
	}
	if r.Err() != nil && r.Err() != io.EOF || at != len(tr.Events) {
		t.Fatalf("%d of %d events, %v", at, len(tr.Events), r.Err())
	}
	meta := r.Schema().Metadata()
	if !slices.Equal(meta.Keys(), []string{"eagergc.version", "eagergc.name", "eagergc.start", "eagergc.meta.app"}) ||
		!slices.Equal(meta.Values(), []string{"2", "varied", "2001-09-09T01:46:40.000000007Z", "a test"}) {
		t.Errorf("metadata %v", meta)
	}
	if empty := native(t, &trace.Trace{}); empty.Next() || empty.Err() != nil && empty.Err() != io.EOF {
		t.Errorf("an empty trace: %v", empty.Err())
	}
}

func word(column arrow.Array, i int) string {
	d := column.(*array.Dictionary)
	return d.Dictionary().(*array.String).Value(d.GetValueIndex(i))
}

// TestTablesSayWhatNumbersMean: the tables in the metadata of a file are those of the
// packages whose numbers they are.
func TestTablesSayWhatNumbersMean(t *testing.T) {
	table := func(n int, word func(int) string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(i, " ", word(i)))
		}
		return strings.Join(all, ", ")
	}
	schema := native(t, &trace.Trace{}).Schema()
	for _, c := range []struct{ column, key, want string }{
		{"aux", "of cycle", table(len(gc.Stats{}.Cycles), func(i int) string { return policy.Trigger(i).String() })},
		{"aux", "of refuse", table(int(pool.StepDrop)+1, func(i int) string { return pool.Step(i).String() })},
		{"bytes", "of decision", table(len(gc.Stats{}.Decisions), func(i int) string { return policy.Action(i).String() })},
	} {
		field, _ := schema.FieldsByName(c.column)
		if got, _ := field[0].Metadata.GetValue(c.key); got != c.want {
			t.Errorf("%s %s: the file has %q, want %q", c.column, c.key, got, c.want)
		}
	}
	if more := pool.StepDrop + 1; more.String() != "unknown" {
		t.Errorf("there is a step %v", more)
	}
}

// rewritten is a file of Arrow's own writer, with the columns that change makes of each batch.
func rewritten(t *testing.T, tr *trace.Trace, schema func(*arrow.Schema) *arrow.Schema, change func([]arrow.Array) []arrow.Array) []byte {
	t.Helper()
	from := native(t, tr)
	to := schema(from.Schema())
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(to))
	for from.Next() {
		batch := from.RecordBatch()
		if err := w.Write(array.NewRecordBatch(to, change(slices.Clone(batch.Columns())), batch.NumRows())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func same(s *arrow.Schema) *arrow.Schema { return s }

// TestForeignColumns: other writers put other columns, and buffers in other places.
func TestForeignColumns(t *testing.T) {
	tr := varied(3000)
	file := rewritten(t, tr, func(s *arrow.Schema) *arrow.Schema {
		md := s.Metadata()
		return arrow.NewSchema(append([]arrow.Field{{Name: "note", Type: arrow.BinaryTypes.String}, {Name: "yes", Type: arrow.FixedWidthTypes.Boolean}}, s.Fields()...), &md)
	}, func(columns []arrow.Array) []arrow.Array {
		notes, yes := array.NewStringBuilder(memory.DefaultAllocator), array.NewBooleanBuilder(memory.DefaultAllocator)
		for i := range columns[0].Len() {
			notes.Append(fmt.Sprint(i))
			yes.Append(i%2 == 0)
		}
		return append([]arrow.Array{notes.NewArray(), yes.NewArray()}, columns...)
	})
	got, err := trace.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range got.Events {
		want := tr.Events[i]
		if got.Label(e) != tr.Label(want) {
			t.Fatalf("event %d: label %q, want %q", i, got.Label(e), tr.Label(want))
		}
		if want.Kind.Labelled() {
			want.Aux = e.Aux
		}
		if e != want {
			t.Fatalf("event %d: got %+v, want %+v", i, e, want)
		}
	}
}

// TestForeignWords: another writer has the words in another order, and only those that
// it needs.
func TestForeignWords(t *testing.T) {
	tr := &trace.Trace{}
	for i := range 20 {
		tr.Record(trace.Event{Time: int64(i), Kind: pickKind(i)})
	}
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"other order":            {[]string{"sync", "alloc"}, ""},
		"a word that is no kind": {[]string{"sync", "malloc"}, `unknown kind "malloc"`},
		"a word that is missing": {[]string{"sync"}, "word 1 of a dictionary of 1"},
		"too many words":         {slices.Repeat([]string{"sync", "alloc"}, 200), "over the bound"},
	} {
		file := rewritten(t, tr, same, func(columns []arrow.Array) []arrow.Array {
			words, indices := array.NewStringBuilder(memory.DefaultAllocator), array.NewUint8Builder(memory.DefaultAllocator)
			words.AppendValues(c.words, nil)
			for i := range columns[1].Len() {
				indices.Append(uint8(i % 2))
			}
			columns[1] = array.NewDictionaryArray(columns[1].DataType().(*arrow.DictionaryType), indices.NewArray(), words.NewArray())
			return columns
		})
		got, err := trace.Read(bytes.NewReader(file))
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if c.want == "" && (err != nil || !slices.Equal(got.Events, tr.Events)) {
			t.Errorf("%s: %v, other events", name, err)
		}
	}
}

func pickKind(i int) trace.Kind {
	if i%2 == 0 {
		return trace.Sync
	}
	return trace.Alloc
}

// TestForeignSchemas: what is no native trace is an error, with its place.
func TestForeignSchemas(t *testing.T) {
	fields := native(t, &trace.Trace{}).Schema().Fields()
	nulls := slices.Clone(fields)
	for i := range nulls {
		nulls[i].Type = arrow.BinaryTypes.String
	}
	for want, s := range map[string]*arrow.Schema{
		`byte 0: schema has 0 columns "time"`:  arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil),
		"byte 0: column 0 is nested":           arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}}, nil),
		"not a trace":                          arrow.NewSchema(fields, nil),
		`schema has 2 columns "label"`:         arrow.NewSchema(append(slices.Clone(fields), fields[8]), nil),
		`column "time" is utf8, want duration`: arrow.NewSchema(nulls, nil),
	} {
		var b bytes.Buffer
		if err := ipc.NewWriter(&b, ipc.WithSchema(s)).Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.Read(&b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestDictionariesDoNotGrow: each addition would copy what came before.
func TestDictionariesDoNotGrow(t *testing.T) {
	schema := native(t, varied(1)).Schema()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema), ipc.WithDictionaryDeltas(true))
	for _, words := range [][]string{{"alloc"}, {"alloc", "free"}} {
		var columns []arrow.Array
		for _, f := range schema.Fields() {
			c := array.NewBuilder(memory.DefaultAllocator, f.Type)
			for _, text := range words {
				switch c := c.(type) {
				case *array.BinaryDictionaryBuilder:
					if f.Name == "space" {
						text = "host"
					}
					_ = c.AppendString(text)
				case *array.StringBuilder:
					c.Append("")
				default:
					c.AppendEmptyValue()
				}
			}
			columns = append(columns, c.NewArray())
		}
		if err := w.Write(array.NewRecordBatch(schema, columns, int64(len(words)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Read(&b); err == nil || !strings.Contains(err.Error(), "grows") {
		t.Errorf("error %v", err)
	}
}
