package formats

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

var (
	snapshots = filepath.Join("torchsnap", "testdata")
	profiles  = filepath.Join("kineto", "testdata")
)

func TestOpen(t *testing.T) {
	for path, source := range map[string]string{
		filepath.Join(snapshots, "devices.p0.pickle"):    "torch",
		filepath.Join(snapshots, "cut.p4.pickle"):        "torch",
		filepath.Join(snapshots, "devices.p4.pickle.gz"): "torch",
		filepath.Join(profiles, "devices.json"):          "PyTorch profiler",
		filepath.Join(profiles, "sync.json.gz"):          "PyTorch profiler",
	} {
		tr, err := Opener{}.Open(path)
		if err != nil || !strings.HasPrefix(tr.Meta["source"], source) || len(tr.Events) == 0 {
			t.Errorf("%s: %v, %v", path, tr, err)
			continue
		}
		// The name plays no part.
		renamed := filepath.Join(t.TempDir(), "trace.arrows")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(renamed, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := Opener{}.Open(renamed)
		if err != nil || len(again.Events) != len(tr.Events) || again.Name != "trace" {
			t.Errorf("%s renamed: %v", path, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty, other, cut := write("empty", ""), write("other", "ELF or so"), write("cut.json", `{"traceEvents":[{"ph"`)
	for _, c := range []struct {
		path, want string
		opener     Opener
		is         error
	}{
		{filepath.Join(dir, "none"), "no such file", Opener{}, fs.ErrNotExist},
		{dir, "is a directory", Opener{}, nil},
		{empty, "empty: empty file", Opener{}, nil},
		{other, `other: unknown format: it begins with "ELF or so" (known: `, Opener{}, errUnknown},
		{other, `unknown format "npy" (known: `, Opener{From: "npy"}, errUnknown},
		{cut, "cut.json: kineto: byte 21: unexpected EOF", Opener{}, nil},
		{cut, "cut.json: torchsnap: byte 0: unknown opcode", Opener{From: "torch"}, nil},
	} {
		_, err := c.opener.Open(c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "formats: ") {
			t.Errorf("%s: got error %v, want one with %q", c.path, err, c.want)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: error %v is not %v", c.path, err, c.is)
		}
	}
}

// A native trace is found by content too, packed or not, and the whole part of
// one that was cut off is not lost.
func TestNative(t *testing.T) {
	dir := t.TempDir()
	want, err := Opener{}.Open(filepath.Join(snapshots, "cut.p4.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "trace.pickle")
	if err := trace.WriteFile(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Opener{}.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, got, want)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err = (Opener{}).Read(&packed); err != nil {
		t.Fatal(err)
	}
	checkSame(t, got, want)
	var text bytes.Buffer
	if err := recording.WriteText(&text, want); err != nil {
		t.Fatal(err)
	}
	if got, err = (Opener{}).Read(&text); err != nil {
		t.Fatal(err)
	}
	checkSame(t, got, want)
	if err := os.WriteFile(path, file[:len(file)-8], 0o600); err != nil {
		t.Fatal(err)
	}
	cut, err := Opener{From: "eagergc"}.Open(path)
	if !errors.Is(err, trace.ErrTruncated) || cut == nil || len(cut.Events) != len(want.Events) {
		t.Errorf("cut off: %v", err)
	}
}

// checkSame compares traces by all but the numbers of their labels.
func checkSame(t *testing.T, got, want *trace.Trace) {
	t.Helper()
	if got.Name != want.Name || !got.Start.Equal(want.Start) || !maps.Equal(got.Meta, want.Meta) || len(got.Events) != len(want.Events) {
		t.Fatalf("got %q, %v, %v, %d events\nwant %q, %v, %v, %d events", got.Name, got.Start, got.Meta, len(got.Events),
			want.Name, want.Start, want.Meta, len(want.Events))
	}
	for i, e := range got.Events {
		w := want.Events[i]
		if got.Label(e) != want.Label(w) {
			t.Fatalf("event %d is labelled %q, want %q", i, got.Label(e), want.Label(w))
		}
		if e.Kind.Labelled() {
			e.Aux = w.Aux
		}
		if e != w {
			t.Fatalf("event %d is %+v, want %+v", i, e, w)
		}
	}
}

func TestStem(t *testing.T) {
	for path, want := range map[string]string{
		"traces/gpt2.snapshot.pickle.gz": "gpt2", "gp-full.kineto.json.gz": "gp-full", "a.b.PKL": "a.b",
		"plain": "plain", ".json": ".json", "x.arrows": "x",
	} {
		if got := recording.Stem(path); got != want {
			t.Errorf("recording.Stem(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestAll(t *testing.T) {
	names := make(map[string]bool)
	for _, f := range All() {
		if names[f.Name] || f.Name == "" || f.About == "" || f.Detect == nil || f.Read == nil {
			t.Errorf("%+v", f)
		}
		names[f.Name] = true
	}
}

func ExampleOpener() {
	t, err := Opener{}.Open(filepath.Join("torchsnap", "testdata", "cut.p4.pickle"))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(t.Name + ": " + t.Meta["source"] + ", live before: " + t.Meta["live_before_objects"] + "\n")
	// Output: cut.p4: torch.cuda.memory snapshot, live before: 18
}
