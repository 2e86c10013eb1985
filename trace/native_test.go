package trace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A random is a test with random numbers of one seed.
type random struct {
	*testing.T
	*rand.Rand
}

// check runs f with many seeds. EAGERGC_TEST_SEED=n runs it with the one that a failure names.
func check(t *testing.T, times int, f func(*random)) {
	t.Helper()
	seed, free := strconv.ParseUint(os.Getenv("EAGERGC_TEST_SEED"), 10, 64)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run it again with EAGERGC_TEST_SEED=%d", seed)
		}
	})
	for range times {
		if free != nil {
			seed = rand.Uint64()
		}
		if f(&random{t, rand.New(rand.NewPCG(seed, 0))}); t.Failed() {
			return
		}
	}
}

// between returns a number from low to high, often one of the two.
func between[T ~int | ~int64 | ~uint32 | ~uint64](r *random, low, high T) T {
	switch r.IntN(10) {
	case 0:
		return low
	case 1:
		return high
	}
	return low + T(r.Uint64N(uint64(high-low)+1))
}

func (r *random) coin() bool { return r.IntN(2) == 0 }

// textFrom returns up to 8 characters, of one byte to four.
func textFrom(r *random) string {
	var b strings.Builder
	for range r.IntN(9) {
		b.WriteRune(pick(r, 'a', ' ', '"', '\n', '=', 'ö', '\u202e', '🙂', rune(r.IntN(128))))
	}
	return b.String()
}

func pick[T any](r *random, list ...T) T { return list[r.IntN(len(list))] }

// drawTrace draws a trace that the format must keep: any numbers in any field,
// labels as they are numbered by first use, times in order.
func drawTrace(t *random, most int) *trace.Trace {
	tr := &trace.Trace{Name: textFrom(t), Meta: map[string]string{textFrom(t): textFrom(t), textFrom(t): ""}, Labels: []string{""}}
	if t.coin() {
		tr.Start = time.Unix(0, between[int64](t, 0, 1<<61)).UTC()
	}
	texts := []string{"", "a", "b", "größer", strings.Repeat("long ", between(t, 0, 20))}
	spaces := pick(t, 1, 11, 12, 256)
	now := between[int64](t, -1000, 1<<60)
	for range between(t, 0, most) {
		e := trace.Event{
			Time: now, ID: t.Uint64(), Bytes: int64(t.Uint64()), Duration: time.Duration(int64(t.Uint64())), Stream: t.Uint32(), Aux: t.Uint32(),
			Kind: trace.Kind(between(t, 0, int(trace.Decision))), Space: pressure.Space(t.IntN(spaces)),
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

// TestRoundTrip: what is written is read back, and gives the same bytes again.
func TestRoundTrip(t *testing.T) {
	check(t, 100, func(t *random) {
		tr := drawTrace(t, pick(t, 50, 50, 3000))
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

// TestWriterKeepsLabelsBatchByBatch: each batch has its own list of labels; a text keeps its number in the file. A reader sorts.
func TestWriterKeepsLabelsBatchByBatch(t *testing.T) {
	check(t, 100, func(t *random) {
		var b bytes.Buffer
		w, err := trace.NewWriter(&b, &trace.Trace{})
		if err != nil {
			t.Fatal(err)
		}
		want := &trace.Trace{}
		var texts []string
		for range between(t, 0, 5) {
			labels := []string{"", pick(t, "a", "b"), "", pick(t, "b", "c", "d")}[:between(t, 0, 4)]
			var events []trace.Event
			for range between(t, 0, 9) {
				e := trace.Event{Time: int64(t.IntN(30)), ID: uint64(len(texts)), Kind: pick(t, trace.Alloc, trace.Free, trace.Mark), Aux: uint32(t.IntN(6))}
				events = append(events, e)
				want.Record(e)
				texts = append(texts, (&trace.Trace{Labels: labels}).Label(e))
			}
			if n, err := w.WriteBatch(events, labels); err != nil || n != len(events) {
				t.Fatal(n, err)
			}
		}
		for range 2 {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := w.WriteBatch(make([]trace.Event, 1), nil); n != 0 || err == nil {
			t.Fatal("an event after Close")
		}
		got, err := trace.Read(&b)
		if trace.Sort(want.Events); err != nil || len(got.Events) != len(want.Events) {
			t.Fatalf("%d events, want %d, %v", len(got.Events), len(want.Events), err)
		}
		for i, e := range got.Events {
			w := want.Events[i]
			if got.Label(e) != texts[e.ID] || e.Kind == trace.Free && e.Aux != w.Aux {
				t.Fatalf("%+v has the label %q, want %q", e, got.Label(e), texts[e.ID])
			}
			if e.Aux = w.Aux; e != w {
				t.Fatalf("%+v, want %+v", e, w)
			}
		}
	})
}

// TestLongLabelsMakeMoreBatches: the text of a batch is bounded by 4 MiB, so that no reader has to hold more.
func TestLongLabelsMakeMoreBatches(t *testing.T) {
	mib := strings.Repeat("x", 1<<20)
	for batches, aux := range map[int][]uint32{1: {1, 1, 1, 0, 3}, 2: {1, 1, 1, 1, 0, 2}, 3: {2, 2, 0, 1, 1, 1, 1}} {
		tr := trace.Trace{Labels: []string{"", mib, strings.Repeat(mib, 5), mib[1:]}}
		for _, a := range aux {
			tr.Record(trace.Event{Kind: trace.Alloc, Aux: a})
		}
		var sizes counter
		if err := trace.Write(&sizes, &tr); err != nil {
			t.Fatal(err)
		}
		if n := len(sizes) - 4; n != batches { // the schema, two dictionaries, the end
			t.Errorf("%v: %d batches, want %d", aux, n, batches)
		}
	}
	var one, two counter
	if err := errors.Join(trace.Write(&one, &trace.Trace{Events: make([]trace.Event, 2048)}), trace.Write(&two, &trace.Trace{Events: make([]trace.Event, 2049)})); err != nil || len(one) != 5 || len(two) != 6 {
		t.Errorf("batches of 2,048 events: %v, %v, %v", one, two, err)
	}
}

// A counter has the sizes of what is written.
type counter []int

func (c *counter) Write(b []byte) (int, error) { *c = append(*c, len(b)); return len(b), nil }

// TestCutFiles cuts a file at every byte: all batches that are whole are read, and the error says which.
func TestCutFiles(t *testing.T) {
	var b bytes.Buffer
	tr := steady(60)
	w, err := trace.NewWriter(&b, tr)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{b.Len()} // of the schema and the words, and of each batch
	for i := range 3 {
		if _, err := w.WriteBatch(tr.Events[i*20:i*20+20], tr.Labels); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, b.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := range b.Len() {
		got, err := trace.Read(bytes.NewReader(b.Bytes()[:cut]))
		whole := 0
		for whole < 3 && cut >= ends[whole+1] {
			whole++
		}
		words := fmt.Sprintf("trace: cut off at byte %d, after %d whole batches with %d events: ", ends[whole], whole, 20*whole)
		if !errors.Is(err, trace.ErrTruncated) || errors.Is(err, io.EOF) || cut >= ends[0] && !strings.HasPrefix(err.Error(), words) {
			t.Fatalf("cut at %d, batches end at %v: %v", cut, ends, err)
		}
		if cut >= ends[0] && (got.Name != tr.Name || !slices.Equal(got.Events, tr.Events[:20*whole])) || cut < 100 && got != nil {
			t.Fatalf("cut at %d, batches end at %v: %v", cut, ends, err)
		}
		broken := errors.New("broken disk") // no cut
		if _, err := trace.Read(io.MultiReader(bytes.NewReader(b.Bytes()[:cut]), errReader{broken})); !errors.Is(err, broken) || errors.Is(err, trace.ErrTruncated) {
			t.Fatalf("an error after %d bytes: %v", cut, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestForgedBytes flips bits and writes lengths that are not there: never a panic, never other events without an error, and
// nothing is allocated that the file does not hold.
func TestForgedBytes(t *testing.T) {
	want := steady(60)
	file := bytesOf(t, want)
	for i := range len(file) {
		bad := bytes.Clone(file)
		bad[i] ^= 1 << (i % 8)
		tr, err := trace.Read(bytes.NewReader(bad))
		if err != nil && !strings.HasPrefix(err.Error(), "trace: ") || err == nil && !slices.Equal(tr.Events, want.Events) {
			t.Fatalf("a bit of byte %d: %v", i, err)
		}
	}
	file = bytesOf(t, steady(1))
	for at := 8; at+8 <= len(file); at += 8 {
		for _, length := range []uint64{1 << 28, 1<<63 + 8} {
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
	for text, want := range map[string]string{
		"ARROW1\x00\x00" + string(file): "stream format", "id,time,size\n": "byte 0: no Arrow message", string(file) + string(file): "more bytes after the end",
		"\xff\xff\xff\xff\x09\x00\x00\x00": "no Arrow message", "\xff\xff\xff\xff\xf8\xff\xff\xff": "no Arrow message", "\xfe\xff\xff\xff\x08\x00\x00\x00": "no Arrow message",
		"\xff\xff\xff\xff\x08\x00\x00\x01": "header of a message: 16777224 over the bound", "\xff\xff\xff\xff\x00\x00\x00\x01": "header of a message: 0 of 16777216 bytes",
	} {
		if _, err := trace.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q", text, err, want)
		}
	}
}

// A writer refuses what no reader takes, and the batches before it can be read.
func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var labels []string
	var many []trace.Event
	for i := range 65 {
		labels = append(labels, fmt.Sprint(i, long))
		many = append(many, trace.Event{Kind: trace.Mark, Aux: uint32(i)})
	}
	for want, events := range map[string][]trace.Event{"kind 200": {{Kind: 200}}, "bytes of labels": many} {
		var file bytes.Buffer
		f, err := trace.NewWriter(&file, &trace.Trace{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteBatch([]trace.Event{{Kind: trace.Sync}}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteBatch(events, labels); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if got, err := trace.Read(&file); !errors.Is(err, trace.ErrTruncated) || len(got.Events) == 0 || got.Events[0].Kind != trace.Sync {
			t.Errorf("%s: read back %v, %v", want, got, err)
		}
	}
	if _, err := trace.NewWriter(new(bytes.Buffer), &trace.Trace{Meta: map[string]string{"x": strings.Repeat(long, 17)}}); err == nil {
		t.Error("a header over the bound was written")
	}
	k := new(scripted)
	r := trace.NewRecorder(k, trace.RecorderConfig{})
	record(r, trace.Event{Kind: 200})
	record(r, trace.Event{Kind: trace.Sync})
	if err := r.Close(); err != nil || r.Lost() != 1 || len(k.t.Events) != 1 {
		t.Errorf("%d lost, %d events, %v", r.Lost(), len(k.t.Events), err)
	}
}
