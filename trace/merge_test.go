package trace_test

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/kineto"
	"github.com/eagergc/eagergc/trace/formats/torchsnap"
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
	return trace.Merge(readAs(t, snapshot[0], torchsnap.Read), readAs(t, stem+".sync.kineto.json.gz", kineto.Read))
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

// The same on what is committed: the end of one workload, with all its waits.
// The figures are those of testdata/expected.json and of the profile's 16 calls.
func TestMergeSample(t *testing.T) {
	base := readAs(t, filepath.Join("torchsnap", "testdata", "cut.p4.pickle"), torchsnap.Read)
	sync := readAs(t, filepath.Join("kineto", "testdata", "sync.json.gz"), kineto.Read)
	events := slices.Clone(base.Events)
	merged, err := trace.Merge(base, sync)
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

func TestMergeOrder(t *testing.T) {
	at := time.Unix(1000, 0)
	base := &trace.Trace{Start: at, Events: []trace.Event{
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 5, Space: pressure.Device(3)},
		{Time: 10, Kind: trace.Drop, ID: 1, Bytes: 5, Space: pressure.Device(3)},
	}}
	sync := &trace.Trace{Start: at.Add(-5), Labels: []string{"", "step"}, Events: []trace.Event{
		{Time: 0, Kind: trace.Mark, Aux: 1, Duration: 7},
		{Time: 4, Kind: trace.Alloc, ID: 1, Bytes: 9},
		{Time: 5, Kind: trace.Sync, Duration: 2},
		{Time: 15, Kind: trace.Sync, Duration: 3},
	}}
	got, err := trace.Merge(base, sync)
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Event{
		{Time: 0, Kind: trace.Mark, Aux: 1, Duration: 2},
		{Time: 0, Kind: trace.Alloc, ID: 1, Bytes: 5, Space: pressure.Device(3)},
		{Time: 0, Kind: trace.Sync, Duration: 2, Space: pressure.Device(3)},
		{Time: 10, Kind: trace.Drop, ID: 1, Bytes: 5, Space: pressure.Device(3)},
		{Time: 10, Kind: trace.Sync, Duration: 3, Space: pressure.Device(3)},
	}
	if !slices.Equal(got.Events, want) || !got.Start.Equal(at) || got.Label(got.Events[0]) != "step" {
		t.Errorf("got  %+v\nwant %+v at %v", got, want, at)
	}
	for _, bad := range []*trace.Trace{{}, {Start: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}} {
		if _, err := trace.Merge(base, bad); err == nil {
			t.Errorf("merge with a start of %v: no error", bad.Start)
		}
	}
}

func TestInterleave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lists []*trace.Events
		var want []trace.Event
		for n := range rapid.IntRange(0, 4).Draw(t, "lists") {
			if rapid.Bool().Draw(t, "none") {
				lists = append(lists, nil)
			}
			list := trace.NewEvents(nil)
			times := rapid.SliceOf(rapid.Int64Range(0, 20)).Draw(t, "times")
			slices.Sort(times)
			for i, at := range times {
				e := trace.Event{Time: at, ID: uint64(n), Bytes: int64(i)}
				list.Append(e)
				want = append(want, e)
			}
			lists = append(lists, list)
		}
		slices.SortStableFunc(want, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
		if got := trace.Interleave(lists...).Items(); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestStartAtFirst(t *testing.T) {
	tr := &trace.Trace{Start: time.Unix(0, 0), Events: []trace.Event{
		{Time: 90, Kind: trace.Mark, Duration: 3}, {Time: 95, Kind: trace.Reserve, Bytes: 1}, {Time: 100, Kind: trace.Alloc}, {Time: 107, Kind: trace.Sync},
	}}
	tr.StartAtFirst()
	want := []trace.Event{{Kind: trace.Mark}, {Kind: trace.Reserve, Bytes: 1}, {Kind: trace.Alloc}, {Time: 7, Kind: trace.Sync}}
	if !slices.Equal(tr.Events, want) || !tr.Start.Equal(time.Unix(0, 100)) {
		t.Errorf("got %+v", tr)
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
		got := sumOf(t, tr)
		if got.Allocs != w.Allocs || got.Drops != w.Drops || got.Syncs != w.Syncs {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
}

// A profile of another program is refused, with both spans.
func TestMergeOtherProgram(t *testing.T) {
	at := time.Date(2026, 11, 21, 3, 27, 0, 0, time.UTC)
	of := func(start time.Time, bytes ...int64) *trace.Trace {
		t := &trace.Trace{Start: start}
		for i, n := range bytes {
			t.Record(trace.Event{Time: int64(i) * 1e9, Kind: trace.Alloc, ID: uint64(i + 1), Bytes: n})
		}
		t.Record(trace.Event{Time: int64(len(bytes)) * 1e9, Kind: trace.Sync, Duration: time.Millisecond})
		return t
	}
	for name, c := range map[string]struct {
		sync *trace.Trace
		want string
	}{
		"another time":   {of(at.Add(time.Minute)), "not of the same time: one is from 2026-11-21 03:27:00.000 to 2026-11-21 03:27:03.001 UTC, the other from 2026-11-21 03:28:00.000"},
		"other memory":   {of(at, 7, 8, 9), "of 3 allocations only 0 are in both"},
		"the same":       {of(at, 100, 200, 9), ""},
		"only its waits": {of(at.Add(time.Second)), ""},
	} {
		_, err := trace.Merge(of(at, 100, 200, 300), c.sync)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestMergeOfOtherCenturies: their distance does not fit into a number of ns.
func TestMergeOfOtherCenturies(t *testing.T) {
	old, now := &trace.Trace{Start: time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)}, &trace.Trace{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, pair := range [][2]*trace.Trace{{old, now}, {now, old}} {
		if _, err := trace.Merge(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "centuries apart") {
			t.Errorf("%v", err)
		}
	}
}
