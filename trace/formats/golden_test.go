package formats_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// shared is the folder of recorded workloads beside the checkout.
var shared = filepath.Join("..", "..", "..", "shared")

// A sum is what golden.json says of a trace, whatever policy is run on it.
type sum struct {
	Trace     string
	Allocs    int
	Drops     int
	Syncs     int
	Peak      int64 `json:"peak_live_bytes"`
	Span      int64 `json:"span_ns"`
	Allocated int64 `json:"allocated_bytes"`
	Wait      int64 `json:"wait_ns"`
}

// sumOf adds up t, and checks on the way that it is one: sorted, each object
// allocated once, and dropped at most once, later.
func sumOf(t *testing.T, tr *trace.Trace) sum {
	t.Helper()
	s := sum{Trace: tr.Name}
	live := make(map[uint64]int64)
	var now, reachable int64
	for i, e := range tr.Events {
		if e.Time < now {
			t.Fatalf("event %d: time %d after %d", i, e.Time, now)
		}
		now = e.Time
		switch e.Kind {
		case trace.Alloc:
			if _, ok := live[e.ID]; ok || e.Bytes <= 0 {
				t.Fatalf("event %d: alloc of %d bytes as object %d (known: %v)", i, e.Bytes, e.ID, ok)
			}
			live[e.ID] = e.Bytes
			s.Allocs++
			s.Allocated += e.Bytes
			reachable += e.Bytes
			s.Peak = max(s.Peak, reachable)
		case trace.Drop:
			if live[e.ID] != e.Bytes || e.Bytes <= 0 {
				t.Fatalf("event %d: drop of %d bytes of object %d, which has %d", i, e.Bytes, e.ID, live[e.ID])
			}
			live[e.ID] = -1
			s.Drops++
			reachable -= e.Bytes
		case trace.Sync:
			s.Syncs++
			s.Wait += int64(e.Duration)
		default:
			continue
		}
		s.Span = e.Time
	}
	return s
}

func readAs(t *testing.T, path string, format string) *trace.Trace {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var plain io.Reader = file
	if strings.HasSuffix(path, ".xz") { // which the package does not read
		xz := exec.Command("xz", "-dc")
		xz.Stdin = file
		out, err := xz.Output()
		if err != nil {
			t.Skipf("needs xz: %v", err)
		}
		plain = bytes.NewReader(out)
	}
	tr, err := formats.Opener{From: format, Memory: 1 << 30}.Read(plain)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// recorded merges the snapshot and the profile of a recorded workload.
func recorded(t *testing.T, name string) (*trace.Trace, error) {
	t.Helper()
	if testing.Short() && name != "mlp" {
		t.Skip("all recordings")
	}
	stem := filepath.Join(shared, "traces", name)
	snapshot, err := filepath.Glob(stem + ".snapshot.pickle.*")
	if err != nil || len(snapshot) != 1 {
		t.Fatalf("snapshots of %s: %q, %v", name, snapshot, err)
	}
	return recording.Merge(readAs(t, snapshot[0], "torch"), readAs(t, stem+".sync.kineto.json.gz", "kineto"))
}

func TestMergeGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join(shared, "reference", "golden.json"))
	if err != nil {
		t.Skipf("needs the recorded workloads beside the checkout: %v", err)
	}
	var want []sum
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		t.Run(w.Trace, func(t *testing.T) {
			merged, err := recorded(t, w.Trace)
			if err != nil {
				t.Fatal(err)
			}
			merged.Name = w.Trace
			got := sumOf(t, merged)
			if got.Span = spanLike(got.Span, w.Span); got != w {
				t.Errorf("got  %+v\nwant %+v", got, w)
			}
		})
	}
}

// spanLike returns want if got is within 1 ns of it. The reference multiplies
// float64 microseconds by 1000, which is 0.5 ns off for "4446283339379.977" (serve).
func spanLike[T ~int64](got, want T) T {
	if d := got - want; -1 <= d && d <= 1 {
		return want
	}
	return got
}

// The same on the committed files: the end of one workload, with all its waits.
// The figures are those of testdata/expected.json and of the profile's 16 calls.
func TestMergeSample(t *testing.T) {
	base := readAs(t, filepath.Join("torchsnap", "testdata", "cut.p4.pickle"), "torch")
	sync := readAs(t, filepath.Join("kineto", "testdata", "sync.json.gz"), "kineto")
	events := slices.Clone(base.Events)
	merged, err := recording.Merge(base, sync)
	if err != nil {
		t.Fatal(err)
	}
	want := sum{Allocs: 44, Drops: 32, Syncs: 16, Peak: 1284725264, Wait: 133523, Allocated: 1288782104, Span: 1525810446}
	if got := sumOf(t, merged); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !merged.Start.Equal(sync.Start) || merged.Meta["source"] != base.Meta["source"] || merged.Meta["sync_source"] != sync.Meta["source"] {
		t.Errorf("Start %v, Meta %v", merged.Start, merged.Meta)
	}
	if !slices.Equal(base.Events, events) {
		t.Error("Merge changed the base")
	}
}

// The profiles that hold memory events as well are traces by themselves.
func TestFullProfile(t *testing.T) {
	for _, w := range []sum{
		{Trace: "gp-full", Allocs: 37764, Drops: 37738, Syncs: 2342},
		{Trace: "mlp-full", Allocs: 22942, Drops: 22930, Syncs: 16},
	} {
		path := filepath.Join(shared, "traces", w.Trace+".kineto.json.gz")
		if _, err := os.Stat(path); err != nil {
			t.Skipf("needs the recorded workloads beside the checkout: %v", err)
		}
		tr := readAs(t, path, "kineto")
		tr.Name = w.Trace
		got := sumOf(t, tr)
		if got.Allocs != w.Allocs || got.Drops != w.Drops || got.Syncs != w.Syncs {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
}

func TestStatsGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join(shared, "reference", "golden.json"))
	if err != nil {
		t.Skipf("needs the recorded workloads beside the checkout: %v", err)
	}
	var want []struct {
		Trace string
		recording.Stats
	}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		t.Run(w.Trace, func(t *testing.T) {
			tr, err := recorded(t, w.Trace)
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Validate(); err != nil {
				t.Fatal(err)
			}
			s := recording.StatsOf(tr)
			got := recording.Stats{Allocs: s.Allocs, Drops: s.Drops, Syncs: s.Syncs, PeakReachable: s.PeakReachable,
				Span: spanLike(s.Span, w.Span), AllocatedBytes: s.AllocatedBytes, Wait: s.Wait}
			if got != w.Stats {
				t.Errorf("got  %+v\nwant %+v", got, w.Stats)
			}
		})
	}
}
