package trace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// drawTrace draws a trace that the format must keep: any numbers in any field,
// labels as they are numbered by first use, times in order.
func drawTrace(t *random) *trace.Trace {
	tr := &trace.Trace{
		Name: textFrom(t),
		Meta: map[string]string{textFrom(t): textFrom(t), textFrom(t): ""},
	}
	if t.coin() {
		tr.Start = time.Unix(0, between[int64](t, 0, 1<<61)).UTC()
	}
	texts := []string{"", "a", "b", "größer"}
	tr.Labels = []string{""}
	now := between[int64](t, -1000, 1<<60)
	for range between(t, 0, 50) {
		e := trace.Event{
			Time: now, ID: t.Uint64(), Bytes: int64(t.Uint64()),
			Duration: time.Duration(int64(t.Uint64())),
			Stream:   t.Uint32(), Aux: t.Uint32(),
			Kind:  trace.Kind(between(t, 0, int(trace.Decision))),
			Space: pressure.Space(uint8(t.Uint32())),
		}
		if e.Kind.Labelled() {
			text := pick(t, texts...)
			if !slices.Contains(tr.Labels, text) {
				tr.Labels = append(tr.Labels, text)
			}
			e.Aux = uint32(slices.Index(tr.Labels, text))
		}
		tr.Record(e)
		now += between[int64](t, 0, 100)
	}
	return tr
}

func bytesOf(t interface{ Fatal(...any) }, tr *trace.Trace) []byte {
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func BenchmarkWrite(b *testing.B) {
	tr, bytes := steady(50_000), 0
	for b.Loop() {
		bytes = len(bytesOf(b, tr))
	}
	b.SetBytes(int64(bytes))
}

func BenchmarkRead(b *testing.B) {
	file := bytesOf(b, steady(50_000))
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := trace.Read(bytes.NewReader(file)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	check(t, 100, func(t *random) {
		tr := drawTrace(t)
		file := bytesOf(t, tr)
		got, err := trace.Read(bytes.NewReader(file))
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
	w, err := trace.NewWriter(&b, &trace.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]trace.Event{
		{{Time: 5, Kind: trace.Sync}, {Time: 5, Kind: trace.Alloc, ID: 1}},
		{{Time: 3, Kind: trace.Alloc, ID: 2}, {Time: 5, Kind: trace.Drop, ID: 1}},
	} {
		if _, err := w.WriteBatch(batch, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Event{{Time: 3, Kind: trace.Alloc, ID: 2}, {Time: 5, Kind: trace.Alloc, ID: 1}, {Time: 5, Kind: trace.Drop, ID: 1}, {Time: 5, Kind: trace.Sync}}
	if !reflect.DeepEqual(tr.Events, want) {
		t.Errorf("got %v, want %v", tr.Events, want)
	}
	if _, err := w.WriteBatch(nil, nil); err != nil {
		t.Errorf("no events after Close: %v", err)
	}
	if _, err := w.WriteBatch(make([]trace.Event, 1), nil); err == nil {
		t.Error("no error of an event after Close")
	}
}

// TestTruncated cuts a file at every byte: all batches that are whole are read,
// and the error says which.
func TestTruncated(t *testing.T) {
	var b bytes.Buffer
	tr := steady(60)
	w, err := trace.NewWriter(&b, tr)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{} // of the schema with its empty batch, and of each batch
	for i := range 4 {
		ends = append(ends, b.Len())
		if i < 3 {
			if _, err := w.WriteBatch(tr.Events[i*20:i*20+20], tr.Labels); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := range b.Len() {
		got, err := trace.Read(bytes.NewReader(b.Bytes()[:cut]))
		var te *trace.TruncatedError
		if !errors.Is(err, trace.ErrTruncated) || !errors.As(err, &te) {
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
		tr, err := trace.Read(bytes.NewReader(bad))
		switch {
		case err != nil:
			errs++
			if !strings.HasPrefix(err.Error(), "trace: ") {
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
		{"huge header", "header of a message", binary.LittleEndian.AppendUint32([]byte{255, 255, 255, 255}, 1<<30)},
	} {
		_, err := trace.Read(bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
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
			_, _ = trace.Read(bytes.NewReader(bad))
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
		_, err := trace.Read(io.MultiReader(bytes.NewReader(file[:n]), errReader{broken}))
		if !errors.Is(err, broken) || errors.Is(err, trace.ErrTruncated) {
			t.Errorf("error after %d bytes: %v", n, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
