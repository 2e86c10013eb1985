package trace_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/kineto"
	"github.com/eagergc/eagergc/trace/torchsnap"
)

// shared is the folder of recorded workloads beside the checkout.
var shared = filepath.Join("..", "..", "shared")

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

func readAs(t *testing.T, path string, read func(io.Reader) (*trace.Trace, error)) *trace.Trace {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr, err := read(f)
	if err != nil {
		t.Fatal(err)
	}
	return tr
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
			stem := filepath.Join(shared, "traces", w.Trace)
			base := readAs(t, stem+".snapshot.pickle.gz", torchsnap.Read)
			sync := readAs(t, stem+".sync.kineto.json.gz", kineto.Read)
			merged, err := trace.Merge(base, sync)
			if err != nil {
				t.Fatal(err)
			}
			merged.Name = w.Trace
			if got := sumOf(t, merged); got != w {
				t.Errorf("got  %+v\nwant %+v", got, w)
			}
		})
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
		tr := readAs(t, path, kineto.Read)
		tr.Name = w.Trace
		t.Logf("%+v %v", sumOf(t, tr), tr.Meta)
		got := sumOf(t, tr)
		if got.Allocs != w.Allocs || got.Drops != w.Drops || got.Syncs != w.Syncs {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
}
