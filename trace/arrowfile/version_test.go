package arrowfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// TestVersion1: the file was written by a program of before version 2.
func TestVersion1(t *testing.T) {
	want := steady(30)
	want.Meta = map[string]string{"app": "a test"}
	want.Record(trace.Event{Time: 1e9, Kind: trace.Cycle, Space: pressure.Pinned, Bytes: 5, Duration: 7, Aux: 2})
	want.Record(trace.Event{Time: 2e9, Kind: trace.Free, Space: pressure.Device(100), ID: 1, Bytes: 1 << 20, Aux: 1})
	got, err := arrowfile.ReadFile("testdata/version1.arrows")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
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
	file, err := ipc.NewReader(bytes.NewReader(bytesOf(t, steady(1))))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		column, key, want string
	}{
		{"aux", "of cycle", table(len(gc.Stats{}.Cycles), func(i int) string { return gc.Trigger(i).String() })},
		{"aux", "of refuse", table(int(pool.StepDrop)+1, func(i int) string { return pool.Step(i).String() })},
		{"bytes", "of decision", table(len(gc.Stats{}.Decisions), func(i int) string { return gc.Action(i).String() })},
	} {
		field, _ := file.Schema().FieldsByName(c.column)
		if got, _ := field[0].Metadata.GetValue(c.key); got != c.want {
			t.Errorf("%s %s: the file has %q, want %q", c.column, c.key, got, c.want)
		}
	}
	if more := pool.StepDrop + 1; more.String() != "unknown" {
		t.Errorf("there is a step %v", more)
	}
}

// TestLabelsAreNumberedByFirstUse: so a tool may group by number.
func TestLabelsAreNumberedByFirstUse(t *testing.T) {
	tr := &trace.Trace{Labels: []string{"", "never used", "second", "first"}}
	for i, label := range []uint32{3, 2, 0, 3, 2} {
		tr.Record(trace.Event{Time: int64(i), Kind: trace.Mark, Aux: label})
	}
	file, err := ipc.NewReader(bytes.NewReader(bytesOf(t, tr)))
	if err != nil {
		t.Fatal(err)
	}
	var got []uint32
	for file.Next() {
		got = append(got, file.RecordBatch().Column(7).(*array.Uint32).Uint32Values()...)
	}
	if want := []uint32{1, 2, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
}

// rewritten is a file whose column of kinds has other words and indices.
func rewritten(t *testing.T, tr *trace.Trace, kinds []string, index func(trace.Kind) uint8) []byte {
	t.Helper()
	from, err := ipc.NewReader(bytes.NewReader(bytesOf(t, tr)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	to := ipc.NewWriter(&b, ipc.WithSchema(from.Schema()))
	words, indices := array.NewStringBuilder(memory.DefaultAllocator), array.NewUint8Builder(memory.DefaultAllocator)
	words.AppendValues(kinds, nil)
	all := words.NewArray()
	at := 0
	for from.Next() {
		batch := from.RecordBatch()
		columns := slices.Clone(batch.Columns())
		for range batch.NumRows() {
			indices.Append(index(tr.Events[at].Kind))
			at++
		}
		columns[1] = array.NewDictionaryArray(columns[1].DataType().(*arrow.DictionaryType), indices.NewArray(), all)
		if err := to.Write(array.NewRecordBatch(from.Schema(), columns, batch.NumRows())); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestForeignWords: another writer has the words in another order, and only those that
// it needs.
func TestForeignWords(t *testing.T) {
	tr := steady(20)
	position := func(k trace.Kind) uint8 {
		if k == trace.Sync {
			return 0
		}
		return 1
	}
	got, err := arrowfile.Read(bytes.NewReader(rewritten(t, tr, []string{"sync", "alloc"}, position)))
	if err != nil || !slices.Equal(got.Events, tr.Events) {
		t.Errorf("%v: other events", err)
	}
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"a word that is no kind": {[]string{"sync", "malloc"}, `unknown kind "malloc"`},
		"a word that is missing": {[]string{"sync"}, "word 1 of a dictionary of 1"},
		"no words":               {nil, "word 1 of a dictionary of 0"},
		"too many words":         {slices.Repeat([]string{"sync", "alloc"}, 200), arrowfile.ErrBound.Error()},
	} {
		_, err := arrowfile.Read(bytes.NewReader(rewritten(t, tr, c.words, position)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestDictionariesDoNotGrow: each addition would copy what came before.
func TestDictionariesDoNotGrow(t *testing.T) {
	var b bytes.Buffer
	kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{{Name: "kind", Type: kind}}, nil)
	w := ipc.NewWriter(&b, ipc.WithSchema(schema), ipc.WithDictionaryDeltas(true))
	column := array.NewDictionaryBuilder(memory.DefaultAllocator, kind).(*array.BinaryDictionaryBuilder)
	for _, words := range [][]string{{"alloc"}, {"alloc", "free"}} {
		for _, word := range words {
			if err := column.AppendString(word); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Write(array.NewRecordBatch(schema, []arrow.Array{column.NewArray()}, int64(len(words)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// The columns that are missing are looked for first; so read the messages alone.
	if _, err := arrowfile.Read(bytes.NewReader(b.Bytes())); err == nil {
		t.Error("no error")
	}
	if err := arrowfile.Messages(b.Bytes()); err == nil || !strings.Contains(err.Error(), "grows") || errors.Is(err, arrowfile.ErrBound) {
		t.Errorf("error %v", err)
	}
}
