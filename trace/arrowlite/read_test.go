package arrowlite_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
	"github.com/eagergc/eagergc/trace/arrowlite"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

var decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true))

func unpack(frame []byte, size int) ([]byte, error) { return decoder.DecodeAll(frame, nil) }

// same holds a file to what arrowfile reads of it. Arrowlite may refuse more, and it
// does not look at some of the metadata; what both read is the same.
func same(t interface {
	Helper()
	Fatalf(string, ...any)
}, file []byte) (read bool) {
	t.Helper()
	got, err := arrowlite.Read(bytes.NewReader(file), unpack)
	if err != nil {
		return false
	}
	want, err := arrowfile.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("arrowlite reads what arrowfile refuses: %v", err)
	}
	if got.Name != want.Name || !got.Start.Equal(want.Start) || !reflect.DeepEqual(got.Meta, want.Meta) || len(got.Events) != len(want.Events) {
		t.Fatalf("got %q, %d events, want %q, %d", got.Name, len(got.Events), want.Name, len(want.Events))
	}
	for i, e := range got.Events {
		w := want.Events[i]
		if got.Label(e) != want.Label(w) {
			t.Fatalf("event %d is labelled %q, want %q", i, got.Label(e), want.Label(w))
		}
		if e != w {
			t.Fatalf("event %d is %+v, want %+v", i, e, w)
		}
	}
	return true
}

func TestSamples(t *testing.T) {
	for _, name := range samples.All() {
		file, err := samples.File(name)
		if err != nil {
			t.Fatal(err)
		}
		if !same(t, file) {
			t.Errorf("%s is not read", name)
		}
	}
}

func TestVersion1(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "arrowfile", "testdata", "version1.arrows"))
	if err != nil {
		t.Fatal(err)
	}
	if !same(t, file) {
		t.Error("version 1 is not read")
	}
}

// TestRoundTrip reads what arrowfile writes of any trace, in batches of any size.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := &trace.Trace{Name: rapid.String().Draw(t, "name"), Meta: rapid.MapOfN(rapid.StringN(0, 8, -1), rapid.String(), 0, 4).Draw(t, "meta")}
		if rapid.Bool().Draw(t, "has start") {
			tr.Start = time.Unix(0, rapid.Int64Range(0, 1<<61).Draw(t, "start")).UTC()
		}
		labels, now := trace.NewLabeler(tr), rapid.Int64Range(-1000, 1<<60).Draw(t, "first")
		for range rapid.IntRange(0, 50).Draw(t, "events") {
			e := trace.Event{
				Time: now, ID: rapid.Uint64().Draw(t, "id"), Bytes: rapid.Int64().Draw(t, "bytes"), Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
				Stream: rapid.Uint32().Draw(t, "stream"), Aux: rapid.Uint32().Draw(t, "aux"),
				Kind: trace.Kind(rapid.IntRange(0, int(trace.Decision)).Draw(t, "kind")), Space: pressure.Space(rapid.Uint8().Draw(t, "space")),
			}
			if e.Kind.Labelled() {
				e.Aux = labels.Label(rapid.SampledFrom([]string{"", "a", "b", "größer"}).Draw(t, "label"))
			}
			tr.Record(e)
			now += rapid.Int64Range(0, 100).Draw(t, "later")
		}
		var file bytes.Buffer
		w, err := arrowfile.NewWriter(&file, tr)
		if err != nil {
			t.Fatal(err)
		}
		for rest := tr.Events; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			if err := w.WriteBatch(rest[:n], tr.Labels); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !same(t, file.Bytes()) {
			t.Fatal("not read")
		}
	})
}

// small is the beginning of a recording, in four batches.
func small(t testing.TB) []byte {
	tr, err := samples.Open("thumb")
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := arrowfile.NewWriter(&file, tr)
	for i := 0; i < 400 && err == nil; i += 100 {
		err = w.WriteBatch(tr.Events[i:i+100], tr.Labels)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestCut refuses every file that is cut off: a small one of four batches at every byte, a
// recording at some.
func TestCut(t *testing.T) {
	file, err := samples.File("thumb")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		if n := random.IntN(len(file)); same(t, file[:n]) {
			t.Fatalf("%d of %d bytes are read", n, len(file))
		}
	}
	file = small(t)
	if !same(t, file) {
		t.Fatal("the whole file is not read")
	}
	for n := range file {
		if same(t, file[:n]) {
			t.Fatalf("%d of %d bytes are read", n, len(file))
		}
	}
}

// TestFlipped reads, whatever bit changes, what was written or nothing: batches carry
// checksums. What the header says of the recording, and where the batches are, has none:
// there arrowfile reads the same.
func TestFlipped(t *testing.T) {
	file, err := samples.File("thumb")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := arrowlite.Read(bytes.NewReader(file), unpack)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		bad := bytes.Clone(file)
		bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		got, err := arrowlite.Read(bytes.NewReader(bad), unpack)
		if err != nil || slices.Equal(got.Events, whole.Events) {
			continue
		}
		if want, err := arrowfile.Read(bytes.NewReader(bad)); err != nil || !slices.Equal(got.Events, want.Events) {
			t.Fatalf("arrowlite reads other events, arrowfile says %v", err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := arrowfile.Read(bytes.NewReader(file)); err == nil {
			same(t, file)
		} else if _, err := arrowlite.Read(bytes.NewReader(file), unpack); err != nil && !errors.Is(err, arrowlite.ErrOther) {
			t.Errorf("%v is not ErrOther", err)
		}
	})
}
