package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

var (
	snapshots = filepath.Join("torchsnap", "testdata")
	profiles  = filepath.Join("kineto", "testdata")
	hooks     = filepath.Join("logs", "testdata")
	// shared is the folder of recorded workloads beside the checkout.
	shared = filepath.Join("..", "..", "..", "shared")
)

func open(t testing.TB, path string) *trace.Trace {
	t.Helper()
	tr, err := Opener{Memory: 1 << 30}.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestTheContentDecides: which format reads a file, whatever its name; what has no name of its own has that of the file.
func TestTheContentDecides(t *testing.T) {
	for path, source := range map[string]string{
		filepath.Join(snapshots, "cut.p4.pickle"):        "torch",
		filepath.Join(snapshots, "devices.p4.pickle.gz"): "torch",
		filepath.Join(profiles, "devices.json"):          "PyTorch profiler",
		filepath.Join(profiles, "sync.json.gz"):          "PyTorch profiler",
		filepath.Join(hooks, "stock.jsonl.gz"):           "CuPy",
		filepath.Join(hooks, "ls.heaptrack.gz"):          "heaptrack",
	} {
		tr := open(t, path)
		if !strings.HasPrefix(tr.Meta["source"], source) || len(tr.Events) == 0 {
			t.Errorf("%s: %v", path, tr.Meta)
		}
		renamed := filepath.Join(t.TempDir(), "trace.arrows")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(renamed, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if again := open(t, renamed); !slices.Equal(again.Events, tr.Events) || again.Name != "trace" {
			t.Errorf("%s renamed: %s", path, again.Name)
		}
	}
	names := make(map[string]bool)
	for _, f := range All() {
		if names[f.Name] || f.Name == "" || f.About == "" || f.Detect == nil || f.Read == nil {
			t.Errorf("%+v", f)
		}
		names[f.Name] = true
	}
	for path, want := range map[string]string{
		"traces/gpt2.snapshot.pickle.gz": "gpt2", "gp-full.kineto.json.xz": "gp-full", "a.b.PKL": "a.b", "plain": "plain", ".json": ".json", "x.arrows": "x",
	} {
		if got := recording.Stem(path); got != want {
			t.Errorf("the stem of %q is %q, want %q", path, got, want)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other, cut := write("other", "ELF or so"), write("cut.json", `{"traceEvents":[{"ph"`)
	for _, c := range []struct {
		path, want string
		opener     Opener
		is         error
	}{
		{filepath.Join(dir, "none"), "no such file", Opener{}, fs.ErrNotExist},
		{dir, "is a directory", Opener{}, nil},
		{write("empty", ""), "empty: empty file", Opener{}, nil},
		{other, `other: unknown format: it begins with "ELF or so" (known: `, Opener{}, errUnknown},
		{other, `unknown format "npy" (known: `, Opener{From: "npy"}, errUnknown},
		{cut, "cut.json: kineto: byte 21: unexpected EOF", Opener{}, nil},
		{cut, "cut.json: torchsnap: byte 0: opcode", Opener{From: "torch"}, nil},
	} {
		_, err := c.opener.Open(c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "formats: ") || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got error %v, want one with %q", c.path, err, c.want)
		}
	}
}

// TestEveryFormThatIsWrittenIsRead: native and text, packed or not. The whole part of a native file that was cut off is not lost.
func TestEveryFormThatIsWrittenIsRead(t *testing.T) {
	want := open(t, filepath.Join(snapshots, "cut.p4.pickle"))
	var native, text bytes.Buffer
	if err := errors.Join(trace.Write(&native, want), recording.WriteText(&text, want)); err != nil {
		t.Fatal(err)
	}
	for _, file := range [][]byte{native.Bytes(), text.Bytes()} {
		for method, packed := range packed(t, file) {
			got, err := Opener{}.Read(bytes.NewReader(packed))
			if err != nil {
				t.Fatal(method, err)
			}
			if got.Name != want.Name || !got.Start.Equal(want.Start) || !maps.Equal(got.Meta, want.Meta) {
				t.Errorf("%s: %q, %v, %v", method, got.Name, got.Start, got.Meta)
			}
			if !slices.EqualFunc(got.Events, want.Events, func(a, b trace.Event) bool { return recording.Text(got, a) == recording.Text(want, b) }) {
				t.Errorf("%s: other events", method)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "cut.arrows")
	native.Reset()
	want.Name = ""
	if err := errors.Join(trace.Write(&native, want), os.WriteFile(path, native.Bytes()[:native.Len()-8], 0o644)); err != nil {
		t.Fatal(err)
	}
	cut, err := Opener{From: "eagergc"}.Open(path)
	if !errors.Is(err, trace.ErrTruncated) || !strings.HasPrefix(err.Error(), "formats: "+path+": ") || cut == nil || cut.Name != "cut" || len(cut.Events) != len(want.Events) {
		t.Errorf("cut off: %v", err)
	}
}

// TestDamaged: a file that is cut off is an error; one with a flipped bit is an error or a valid trace.
func TestDamaged(t *testing.T) {
	for _, path := range []string{filepath.Join(profiles, "devices.json"), filepath.Join(snapshots, "devices.p4.pickle")} {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file = bytes.TrimSpace(file)
		for n := range file {
			if _, err := (Opener{}).Read(bytes.NewReader(file[:n])); err == nil {
				t.Fatalf("%s cut after %d bytes: no error", path, n)
			}
			for bit := range 8 {
				bad := bytes.Clone(file)
				bad[n] ^= 1 << bit
				if tr, err := (Opener{}).Read(bytes.NewReader(bad)); err == nil && tr.Validate() != nil {
					t.Fatal(tr.Validate())
				}
			}
		}
	}
}

// TestGolden: the figures of the recorded workloads are those of the reference, and an import allocates no more than three times
// the unpacked file, garbage included.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join(shared, "reference", "golden.json"))
	if err != nil {
		t.Skipf("needs the recorded workloads beside the checkout: %v", err)
	}
	var all []struct {
		Trace string
		recording.Stats
	}
	if err := json.Unmarshal(golden, &all); err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		if testing.Short() && w.Trace != "mlp" && w.Trace != "gnn" {
			continue
		}
		stem := filepath.Join(shared, "traces", w.Trace)
		snapshot, err := filepath.Glob(stem + ".snapshot.pickle.*")
		if err != nil || len(snapshot) != 1 {
			t.Fatalf("snapshots of %s: %q, %v", w.Trace, snapshot, err)
		}
		tr, err := recording.Merge(open(t, snapshot[0]), open(t, stem+".sync.kineto.json.gz"))
		if err == nil {
			err = tr.Validate()
		}
		if err != nil {
			t.Fatal(w.Trace, err)
		}
		s := recording.StatsOf(tr)
		// The reference multiplies float64 microseconds by 1000, which is 0.5 ns off for "4446283339379.977" (serve).
		if d := s.Span - w.Span; -1 <= d && d <= 1 {
			s.Span = w.Span
		}
		if got := (recording.Stats{Allocs: s.Allocs, Drops: s.Drops, Syncs: s.Syncs, PeakReachable: s.PeakReachable, Span: s.Span, AllocatedBytes: s.AllocatedBytes, Wait: s.Wait}); got != w.Stats {
			t.Errorf("%s: got  %+v\nwant %+v", w.Trace, got, w.Stats)
		}
	}
	for name, want := range map[string]string{"gp-full": "37764 37738 2342", "mlp-full": "22942 22930 16"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := recording.StatsOf(open(t, filepath.Join(shared, "traces", name+".kineto.json.gz")))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 65<<20 {
			t.Errorf("%s: the import of 13 or 21 MB allocated %d bytes", name, used)
		}
		if got := fmt.Sprint(s.Allocs, s.Drops, s.Syncs); got != want {
			t.Errorf("%s: allocations, drops and waits are %s, want %s", name, got, want)
		}
	}
}

// FuzzRead opens any bytes, packed or not. The result is a valid trace or an error.
func FuzzRead(f *testing.F) {
	var paths []string
	for _, folder := range []string{snapshots, profiles, hooks} {
		found, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			f.Fatal(err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		tr, err := Opener{}.Read(bytes.NewReader(b))
		if tr == nil {
			if err == nil {
				t.Fatal("neither a trace nor an error")
			}
			return
		}
		if err := tr.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// A long allocation site in each row packs so well that a reader could take the file for a bomb.
func TestLongSitesAreRead(t *testing.T) {
	events := make([]trace.Event, 20000)
	for i := range events {
		events[i] = trace.Event{Time: int64(i), ID: uint64(i), Kind: trace.Alloc, Bytes: 1, Aux: 1}
	}
	var file bytes.Buffer
	if err := trace.Write(&file, &trace.Trace{Events: events, Labels: []string{"", strings.Repeat("example.org/a/long/path.Function\n", 200)}}); err != nil {
		t.Fatal(err)
	}
	packed := file.Len()
	if got, err := trace.Read(&file); err != nil || len(got.Events) != len(events) || packed > 8<<20 {
		t.Errorf("%d bytes: %v", packed, err)
	}
}
