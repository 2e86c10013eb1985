package arrowfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// drawTrace draws a trace that the format must keep: any numbers in any field,
// labels as they are numbered by first use, times in order.
func drawTrace(t *rapid.T) *trace.Trace {
	tr := &trace.Trace{
		Name: rapid.String().Draw(t, "name"),
		Meta: rapid.MapOfN(rapid.StringN(0, 8, -1), rapid.String(), 0, 4).Draw(t, "meta"),
	}
	if rapid.Bool().Draw(t, "has start") {
		tr.Start = time.Unix(0, rapid.Int64Range(0, 1<<61).Draw(t, "start")).UTC()
	}
	labels := trace.NewLabeler(tr)
	now := rapid.Int64Range(-1000, 1<<60).Draw(t, "first")
	for range rapid.IntRange(0, 50).Draw(t, "events") {
		e := trace.Event{
			Time: now, ID: rapid.Uint64().Draw(t, "id"), Bytes: rapid.Int64().Draw(t, "bytes"),
			Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
			Stream:   rapid.Uint32().Draw(t, "stream"), Aux: rapid.Uint32().Draw(t, "aux"),
			Kind:  trace.Kind(rapid.IntRange(0, int(trace.Decision)).Draw(t, "kind")),
			Space: pressure.Space(rapid.Uint8().Draw(t, "space")),
		}
		if e.Kind.Labelled() {
			e.Aux = labels.Label(rapid.SampledFrom([]string{"", "a", "b", "größer"}).Draw(t, "label"))
		}
		tr.Record(e)
		now += rapid.Int64Range(0, 100).Draw(t, "later")
	}
	return tr
}

func bytesOf(t interface{ Fatal(...any) }, tr *trace.Trace) []byte {
	var b bytes.Buffer
	if err := arrowfile.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrace(t)
		file := bytesOf(t, tr)
		got, err := arrowfile.Read(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Events) == 0 && len(tr.Events) == 0 {
			got.Events, tr.Events = nil, nil
		}
		if !reflect.DeepEqual(got, tr) {
			t.Fatalf("got  %+v\nwant %+v", got, tr)
		}
		if !bytes.Equal(bytesOf(t, got), file) {
			t.Fatal("the trace that was read back gives other bytes")
		}
	})
}

// steady returns n events, one a microsecond.
func steady(n int) *trace.Trace {
	tr := &trace.Trace{Name: "steady", Labels: []string{"", "loss.item()"}}
	for i := range n {
		e := trace.Event{Time: int64(i) * 1000, ID: uint64(i + 1), Bytes: int64(i%7+1) << 20, Kind: trace.Alloc, Space: pressure.Device(0)}
		if i%10 == 9 {
			e = trace.Event{Time: e.Time, Kind: trace.Sync, Duration: time.Duration(i), Aux: 1}
		}
		tr.Record(e)
	}
	return tr
}

// TestUnsorted: a recorder's batches need not follow each other in time.
func TestUnsorted(t *testing.T) {
	var b bytes.Buffer
	w, err := arrowfile.NewWriter(&b, &trace.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]trace.Event{
		{{Time: 5, Kind: trace.Sync}, {Time: 5, Kind: trace.Alloc, ID: 1}},
		{{Time: 3, Kind: trace.Alloc, ID: 2}, {Time: 5, Kind: trace.Drop, ID: 1}},
	} {
		if err := w.WriteBatch(batch, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := arrowfile.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Event{{Time: 3, Kind: trace.Alloc, ID: 2}, {Time: 5, Kind: trace.Alloc, ID: 1}, {Time: 5, Kind: trace.Drop, ID: 1}, {Time: 5, Kind: trace.Sync}}
	if !reflect.DeepEqual(tr.Events, want) {
		t.Errorf("got %v, want %v", tr.Events, want)
	}
	if err := w.WriteBatch(nil, nil); err != nil {
		t.Errorf("no events after Close: %v", err)
	}
	if err := w.WriteBatch(make([]trace.Event, 1), nil); err == nil {
		t.Error("no error of an event after Close")
	}
}

// TestTruncated cuts a file at every byte: all batches that are whole are read,
// and the error says which.
func TestTruncated(t *testing.T) {
	var b bytes.Buffer
	tr := steady(60)
	w, err := arrowfile.NewWriter(&b, tr)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{} // of the schema with its empty batch, and of each batch
	for i := range 4 {
		ends = append(ends, b.Len())
		if i < 3 {
			if err := w.WriteBatch(tr.Events[i*20:i*20+20], tr.Labels); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := range b.Len() {
		got, err := arrowfile.Read(bytes.NewReader(b.Bytes()[:cut]))
		var te *arrowfile.TruncatedError
		if !errors.Is(err, arrowfile.ErrTruncated) || !errors.As(err, &te) {
			t.Fatalf("cut at %d: error %v", cut, err)
		}
		whole := 0
		for whole < 3 && cut >= ends[whole+1] {
			whole++
		}
		if te.Batches != whole || te.Events != 20*whole || te.Offset > int64(cut) {
			t.Fatalf("cut at %d, batches end at %v: %v", cut, ends, err)
		}
		if cut >= ends[0] && (te.Offset != int64(ends[whole]) || got.Name != tr.Name || len(got.Events) != 20*whole) {
			t.Fatalf("cut at %d, batches end at %v: %v with %d events", cut, ends, err, len(got.Events))
		}
	}
}

// TestCorrupt flips bits: never a panic, never a wrong number of events taken
// for the right one without an error.
func TestCorrupt(t *testing.T) {
	want := steady(300)
	file := bytesOf(t, want)
	errs, missed := 0, 0
	for i := range len(file) {
		bad := bytes.Clone(file)
		bad[i] ^= 1 << (i % 8)
		tr, err := arrowfile.Read(bytes.NewReader(bad))
		switch {
		case err != nil:
			errs++
			if !strings.HasPrefix(err.Error(), "arrowfile: ") {
				t.Fatalf("byte %d: %v", i, err)
			}
		case tr == nil:
			t.Fatalf("byte %d: no trace and no error", i)
		case !slices.Equal(tr.Events, want.Events): // the texts of the schema have no checksum
			missed++
		}
	}
	t.Logf("%d bits flipped: %d errors, %d other traces", len(file), errs, missed)
	if missed > 0 {
		t.Errorf("%d flipped bits gave other events without an error", missed)
	}
}

func TestBadFiles(t *testing.T) {
	whole := bytesOf(t, steady(10))
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"feather", "stream format", append([]byte("ARROW1\x00\x00"), whole...)},
		{"text", "byte 0: no Arrow message", []byte("id,time,size\n")},
		{"concatenated", "more bytes after the end", append(bytes.Clone(whole), whole...)},
		{"foreign", "not a trace", foreign(t, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil))},
		{"columns", `column "time"`, foreign(t, arrow.NewSchema([]arrow.Field{{Name: "kind", Type: arrow.PrimitiveTypes.Uint8}}, nil))},
		{"nested", "nested", foreign(t, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}}, nil))},
		{"huge header", "header of a message", binary.LittleEndian.AppendUint32([]byte{255, 255, 255, 255}, 1<<30)},
	} {
		_, err := arrowfile.Read(bytes.NewReader(c.file))
		if c.name == "foreign" || c.name == "columns" {
			if err == nil || !strings.Contains(err.Error(), "byte 0: schema has no column") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// foreign returns an empty stream with another schema.
func foreign(t *testing.T, s *arrow.Schema) []byte {
	t.Helper()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(s))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBounds: each limit refuses a file that is one over it, and takes one that
// is not.
func TestBounds(t *testing.T) {
	file := bytesOf(t, steady(100))
	for _, c := range []struct {
		name    string
		in, out arrowfile.Bounds
	}{
		{"events", arrowfile.Bounds{Events: 100}, arrowfile.Bounds{Events: 99}},
		{"metadata", arrowfile.Bounds{Metadata: 4096}, arrowfile.Bounds{Metadata: 64}},
		{"batch", arrowfile.Bounds{Batch: 1 << 16}, arrowfile.Bounds{Batch: 600}},
		{"label", arrowfile.Bounds{Label: 11}, arrowfile.Bounds{Label: 10}},
		{"labels", arrowfile.Bounds{Labels: 11}, arrowfile.Bounds{Labels: 10}},
	} {
		if _, err := c.in.Read(bytes.NewReader(file)); err != nil {
			t.Errorf("%s within %+v: %v", c.name, c.in, err)
		}
		if _, err := c.out.Read(bytes.NewReader(file)); !errors.Is(err, arrowfile.ErrBound) {
			t.Errorf("%s over %+v: error %v", c.name, c.out, err)
		}
	}
}

// TestBomb: a small file that unpacks to gigabytes is refused before they are
// allocated.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	w, err := arrowfile.NewWriter(&b, &trace.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]trace.Event, 1<<16)
	for range 64 { // 64 x 2.8 MB
		if err := w.WriteBatch(zeros, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := b.Bytes()
	if _, err = (arrowfile.Bounds{Ratio: 8}).Read(bytes.NewReader(file)); !errors.Is(err, arrowfile.ErrBound) || !strings.Contains(err.Error(), "unpacked bytes") {
		t.Errorf("%d bytes that unpack to %d: error %v", len(file), 64<<16*43, err)
	}
	if _, err = arrowfile.Read(bytes.NewReader(file[:len(file)/4])); !errors.Is(err, arrowfile.ErrTruncated) {
		t.Errorf("%d bytes that unpack to %d: error %v", len(file)/4, 16<<16*43, err)
	}
}

// TestLengths: lengths that the file does not hold are not allocated. The body
// length of a batch is at a fixed place of its header only for this writer, so
// every 8 bytes of the headers get their turn.
func TestLengths(t *testing.T) {
	file := bytesOf(t, steady(1))
	for at := 8; at+8 <= len(file); at += 8 {
		for _, length := range []uint64{1 << 28, 1 << 40, 1 << 62, 1<<63 + 8} {
			bad := bytes.Clone(file)
			binary.LittleEndian.PutUint64(bad[at:], length)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = arrowfile.Read(bytes.NewReader(bad))
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 400<<20 {
				t.Fatalf("%d at byte %d: the reader allocated %d bytes", length, at, got)
			}
		}
	}
}

// TestReadError: an error of the reader underneath is no cut.
func TestReadError(t *testing.T) {
	file := bytesOf(t, steady(10))
	broken := errors.New("broken disk")
	for _, n := range []int{0, 5, 20, len(file) / 2, len(file) - 1} {
		_, err := arrowfile.Read(io.MultiReader(bytes.NewReader(file[:n]), errReader{broken}))
		if !errors.Is(err, broken) || errors.Is(err, arrowfile.ErrTruncated) {
			t.Errorf("error after %d bytes: %v", n, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestForeignWriter: other writers put other columns and no compression.
func TestForeignWriter(t *testing.T) {
	tr := steady(3)
	native, err := ipc.NewReader(bytes.NewReader(bytesOf(t, tr)))
	if err != nil {
		t.Fatal(err)
	}
	md := native.Schema().Metadata()
	schema := arrow.NewSchema(append([]arrow.Field{{Name: "note", Type: arrow.BinaryTypes.String}}, native.Schema().Fields()...), &md)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	for native.Next() {
		batch := native.RecordBatch()
		notes := array.NewStringBuilder(memory.DefaultAllocator)
		for i := range batch.NumRows() {
			notes.Append(fmt.Sprint(i))
		}
		columns := append([]arrow.Array{notes.NewArray()}, batch.Columns()...)
		if err := w.Write(array.NewRecordBatch(schema, columns, batch.NumRows())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := arrowfile.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Events, tr.Events) {
		t.Errorf("got %v, want %v", got.Events, tr.Events)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(bytesOf(f, steady(20)))
	f.Add(bytesOf(f, &trace.Trace{}))
	f.Add(bytesOf(f, steady(20))[:700])
	small := arrowfile.Bounds{Events: 1 << 12, Batch: 1 << 20, Metadata: 1 << 16, Ratio: 1}
	f.Fuzz(func(t *testing.T, file []byte) {
		tr, err := small.Read(bytes.NewReader(file))
		if err != nil {
			if tr != nil && !errors.Is(err, arrowfile.ErrTruncated) {
				t.Fatalf("a trace comes with %v", err)
			}
			return
		}
		again, err := arrowfile.Read(bytes.NewReader(bytesOf(t, tr)))
		if err != nil {
			t.Fatalf("what was read cannot be written and read: %v", err)
		}
		if !slices.Equal(again.Events, tr.Events) {
			t.Fatal("a round trip changes the events")
		}
	})
}

func BenchmarkWrite(b *testing.B) { benchmarkFile(b, false) }
func BenchmarkRead(b *testing.B)  { benchmarkFile(b, true) }

func benchmarkFile(b *testing.B, read bool) {
	tr := recorded(b, "gpt2")
	file := bytesOf(b, tr)
	b.ReportAllocs()
	for b.Loop() {
		if read {
			if _, err := arrowfile.Read(bytes.NewReader(file)); err != nil {
				b.Fatal(err)
			}
		} else {
			bytesOf(b, tr)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(tr.Events)), "ns/event")
	b.ReportMetric(float64(len(file))/float64(len(tr.Events)), "B/event")
}

// Long labels make more batches, not larger ones, and come back.
func TestLongLabels(t *testing.T) {
	want := &trace.Trace{Labels: []string{""}, Meta: map[string]string{}}
	for n := range 40_000 {
		want.Record(trace.Event{Time: int64(n), Kind: trace.Alloc, ID: uint64(n), Bytes: 1, Aux: uint32(n%7 + 1)})
	}
	for n := range 7 {
		want.Labels = append(want.Labels, strings.Repeat(string(rune('a'+n)), 1000))
	}
	var b bytes.Buffer
	if err := arrowfile.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := arrowfile.Bounds{Batch: 8 << 20}.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Events, want.Events) || !slices.Equal(got.Labels, want.Labels) {
		t.Error("what comes back differs")
	}
}
