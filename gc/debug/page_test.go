package debug

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares what was made with a file of testdata that a reader has checked.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("%s:%d: got\n%s\nwant\n%s\n(-update writes it, if what is new is right)", path, i+1, strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""), strings.Join(b[min(i, len(b)):min(i+1, len(b))], ""))
		}
	}
}

// fourProcessors makes shares of processor time the same on all machines.
func fourProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// busy is a collector two minutes after its start. No two of its numbers are the same, so that none passes for another.
func busy() *gc.Snapshot {
	stats := gc.Stats{
		Cycles: [4]uint64{11, 12, 13, 14}, Decisions: [3]uint64{15, 16, 17}, Freed: 18 << 20, Objects: 19,
		Busy: 20 * time.Millisecond, Processor: 21 * time.Millisecond, Exposed: 22 * time.Millisecond, MaxPause: 23 * time.Millisecond,
		Tracked: 24, Cost: 25 * time.Millisecond, Slowdown: 0.26, Failures: 27, Capped: 28, Overtaken: 29, Pending: 30, Over: 31,
	}
	stats.Pauses[2], stats.Pauses[4], stats.Pauses[len(stats.Pauses)-1] = 32, 34, 33
	return &gc.Snapshot{
		Now: 2 * time.Minute, Policy: "cudajl", Caps: gc.Caps{Cycles: 0.25, Gauges: 100, Held: 0.05}, Stats: stats, Step: 2 * time.Second,
		Sources: []gc.Watched{
			{Sample: pressure.Sample{Space: pressure.Device(1), Live: 1001, Reserved: 1002, Limit: 1003}, Settled: 1004, Levels: []gc.Level{
				{Start: 100 * time.Second, First: 201, Last: 202, Least: 200, Most: 204, Reserved: 205, Limit: 206},
				{Start: 102 * time.Second, First: 301, Last: 302, Least: 300, Most: 304, Reserved: 305, Limit: 306},
				{Start: 118 * time.Second, First: 401, Last: 402, Least: 250, Most: 404, Reserved: 405, Limit: 406},
			}},
			{Sample: pressure.Sample{Live: 501, Reserved: 502}, Levels: []gc.Level{{Start: 119 * time.Second, First: 503, Last: 504, Least: 505, Most: 506, Reserved: 507}}},
		},
		Libraries: []gc.Counted{{Name: "libfoo", Live: 601, Objects: 602, Freed: 603}, {Name: "libbar", Live: 511, Objects: 512, Freed: 513}},
		Survivors: []gc.Survivor{{Site: "cache.Put\n\tcache.go:7", Bytes: 701, Samples: 702, Cycles: 703}, {Site: "main.main\n\tmain.go:9", Bytes: 611, Samples: 612, Cycles: 613}},
		Cycles: []policy.Cycle{
			{Start: 80 * time.Second, Duration: 81 * time.Millisecond, Work: 82, Exposed: 83 * time.Microsecond, Trigger: policy.TriggerRefusal, Action: policy.Overlap, Freed: 84, LiveAfter: 85, Limit: 86, Wanted: 87},
			{Start: 90 * time.Second, Duration: 91 * time.Millisecond, Work: 92, Exposed: 93 * time.Microsecond, Trigger: policy.TriggerExplicit, Action: policy.Block, Freed: 94, LiveAfter: 95, Limit: 96, Wanted: 97},
		},
		Decisions: []gc.Decided{
			{Point: policy.Point{Now: 60 * time.Second, At: policy.Sync, Sample: pressure.Sample{Space: pressure.Pinned, Live: 71, Reserved: 72, Limit: 284}, Request: 73, Freed: 74, LiveAfter: 75},
				Decision: policy.Decision{Action: policy.Block, Reason: "at a wait"}, Repeats: 76},
			{Point: policy.Point{Now: 70 * time.Second, At: policy.Allocation, Sample: pressure.Sample{Live: 61, Reserved: 62, Limit: 610}, Request: 63, Freed: 64, LiveAfter: 65},
				Decision: policy.Decision{Action: policy.Skip, Reason: "below <threshold>"}, Repeats: 66},
		},
		Reasons: map[string]uint64{"at a wait": 51, "below <threshold>": 52},
		Work: []gc.Work{
			{Start: 40 * time.Second, Cycles: [4]uint32{1, 9, 0, 0}, Freed: 41, Held: 42, Longest: 43},
			{Start: 104 * time.Second, Cycles: [4]uint32{2, 1, 4, 3}, Busy: 44 * time.Millisecond, Processor: 2400 * time.Millisecond, Freed: 45 << 10, Held: 4600 * time.Millisecond, Longest: 47 * time.Millisecond},
			{Start: 110 * time.Second, Busy: 53, Held: 1400 * time.Millisecond, Longest: 48 * time.Millisecond},
			{Start: 112 * time.Second, Cycles: [4]uint32{0, 0, 5, 0}, Freed: 49 << 10, Processor: 2400 * time.Millisecond},
		},
	}
}

type report string

func (r report) Report(w io.Writer) error { _, err := io.WriteString(w, string(r)); return err }

// A half is a report that fails in the middle.
type half struct{}

func (half) Report(w io.Writer) error {
	_, _ = io.WriteString(w, "one, ")
	return errors.New("no more")
}

// Styles and script are the page's own business: see TestScript and TestPageInBrowser.
var leaveOut = regexp.MustCompile(`(?s)(<style nonce="NONCE">).*(</style>)|(<script nonce="NONCE">).*(</script>)`)

// The page of one that works, of one that has failed with nothing watched, and of one that has just begun. What is
// in the files has been compared with busy by hand.
func TestPage(t *testing.T) {
	fourProcessors(t)
	failed := &gc.Snapshot{Now: time.Second, Policy: "never", Running: true, Err: errors.New("gc: the policy has panicked: <oops>")}
	begun := &gc.Snapshot{Now: time.Millisecond, Policy: "pacer", Step: 1 << 24, Sources: []gc.Watched{{Levels: []gc.Level{{}}}}}
	for name, of := range map[string]struct {
		now *gc.Snapshot
		h   *handler
	}{
		"busy":   {busy(), &handler{token: "TOKEN", reports: []Reporter{report("pool: <fine>\n"), half{}}, last: kept{}}},
		"failed": {failed, &handler{token: "T"}},
		"begun":  {begun, &handler{token: "T"}},
	} {
		got, err := of.h.render(of.now, "NONCE")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".html", leaveOut.ReplaceAll(got, []byte("$1$2$3$4")))
		text, err := json.MarshalIndent(of.h.status(of.now), "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", append(text, '\n'))
	}
}

// A kept is a recorder.
type kept struct{ half }

func (kept) WriteRecording(io.Writer) error { return errors.New("the disk is full") }

// health of the snapshot, with what was changed in it.
func healthOf(now *gc.Snapshot) health {
	s := (&handler{}).status(now)
	return s.Health
}

// well is a collector two minutes after its start that has no trouble: 240 s of processor time in a minute.
func well() *gc.Snapshot {
	return &gc.Snapshot{
		Now: 2 * time.Minute, Step: time.Second, Policy: "pacer", Caps: gc.Caps{Cycles: 0.5, Gauges: 100, Held: 0.3},
		Sources: []gc.Watched{{Sample: pressure.Sample{Live: 300, Reserved: 990, Limit: 1000}, Levels: []gc.Level{{}}}},
		Work: []gc.Work{
			{Start: 50 * time.Second, Cycles: [4]uint32{0, 50, 0, 0}, Freed: 1 << 40, Processor: time.Hour, Held: time.Hour, Longest: time.Hour}, // more than a minute ago
			{Start: 90 * time.Second, Cycles: [4]uint32{2, 1, 1, 0}, Freed: 3 << 20, Busy: time.Hour, Processor: 2400 * time.Millisecond, Held: 600 * time.Millisecond, Longest: 7 * time.Millisecond},
		},
	}
}

const wellDone = "in the last minute 4 cycles freed 3.00 MiB and took 1 % of the processor time, and held callers for 1 % of the time."

// Each trouble stands in the line from its bound on, and not just beside it.
func TestHealthBounds(t *testing.T) {
	fourProcessors(t)
	for _, tc := range []struct {
		name        string
		change      func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample)
		level, text string
	}{
		{"well", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) {}, "good", "Healthy: 300 B live of 1000 B (30 %); " + wellDone},
		{"nothing watched", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { s.Sources = nil }, "good", "Healthy: " + wellDone},
		{"nothing done", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { *w = gc.Work{} }, "good",
			"Healthy: 300 B live of 1000 B (30 %); in the last minute 0 cycles freed 0 B and took 0 % of the processor time, and held callers for 0 % of the time."},
		{"a minute old", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) {
			s.Now, s.Work, w.Start = time.Minute, s.Work[1:], 0
		}, "good",
			"Healthy: 300 B live of 1000 B (30 %); " + wellDone},
		{"younger", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) {
			s.Now, s.Work, w.Start, w.Cycles = 30*time.Second, s.Work[1:], 0, [4]uint32{0, 0, 1, 0}
		}, "good", "Healthy: 300 B live of 1000 B (30 %); since the start 1 cycle freed 3.00 MiB and took 2 % of the processor time, and held callers for 2 % of the time."},
		{"refusals, fewer than the policy's", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { w.Cycles = [4]uint32{3, 2, 0, 0} }, "good", ""},
		{"as many", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { w.Cycles = [4]uint32{2, 2, 1, 0} }, "watch",
			"2 of 5 cycles in the last minute were forced by allocations that did not fit: the policy collects too late, or the limit is too low."},
		{"one of one, since the start", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) {
			s.Now, s.Work, w.Start, w.Cycles = 30*time.Second, s.Work[1:], 0, [4]uint32{0, 1, 0, 0}
		}, "watch", "1 of 1 cycle since the start were forced by allocations that did not fit: the policy collects too late, or the limit is too low."},
		{"held for a twentieth", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { w.Held = 3 * time.Second }, "good", ""},
		{"held for more", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { w.Held = 3001 * time.Millisecond }, "watch",
			"Callers were held by cycles for 5 % of the time in the last minute, 7ms at most."},
		{"0.9 of the cap", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { w.Processor = 108 * time.Second }, "good", ""},
		{"more", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { w.Processor = 109 * time.Second }, "watch",
			"In the last minute 4 cycles freed 3.00 MiB and took 45 % of the processor time, which is all that they may (50 %)."},
		{"no cap", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { w.Processor, s.Caps.Cycles = 239*time.Second, 1 }, "good", ""},
		{"95 % full", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { of.Live = 950 }, "good", ""},
		{"more than that", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { of.Live = 951 }, "watch", "The host memory is full: 951 B live of 1000 B (95 %)."},
		{"all of it", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { of.Live = 1000 }, "watch", "The host memory is full: 1000 B live of 1000 B (100 %)."},
		{"no limit", func(s *gc.Snapshot, w *gc.Work, of *pressure.Sample) { of.Live, of.Limit = 1<<40, 0 }, "good", "Healthy: 1.00 TiB live, no limit; " + wellDone},
	} {
		now := well()
		tc.change(now, &now.Work[1], &now.Sources[0].Sample)
		if got := healthOf(now); got.Level != tc.level || tc.text != "" && got.Text != tc.text {
			t.Errorf("%s: %+v, want %s %s", tc.name, got, tc.level, tc.text)
		}
	}
}

// Where there are several troubles at once, the line has the worst; each says what to do, and leads to the text about it.
func TestHealthHasTheWorst(t *testing.T) {
	fourProcessors(t)
	text, err := os.ReadFile("../EMBEDDING.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.NewReplacer(" ", "-", ",", "", "?", "").Replace(strings.ToLower(string(text)))
	now := well()
	now.Err, now.Stats.OverLimit, now.Sources[0].Live = errors.New("gc: oops"), true, 999
	now.Work[1].Cycles, now.Work[1].Held, now.Work[1].Processor = [4]uint32{0, 3, 0, 0}, time.Minute, 239*time.Second
	for _, tc := range []struct {
		level, text, do, see string
		mend                 func()
	}{
		{"bad", "contained; the error is below. The policy in use is pacer.", "Mend what panicked", "seeing-what-it-does", func() { now.Err = nil }},
		{"bad", "More is reachable than the limit", "hold less", "is-it-the-gc", func() { now.Stats.OverLimit = false }},
		{"watch", "3 of 3 cycles", "Raise the limit, or choose", "choosing-a-policy", func() { now.Work[1].Cycles[policy.TriggerRefusal] = 0 }},
		{"watch", "Callers were held by cycles for 100 %", "Lower Caps.Held", "own-by-hand", func() { now.Work[1].Held = 0 }},
		{"watch", "which is all that they may (50 %)", "For fewer cycles", "own-by-hand", func() { now.Work[1].Processor = 0 }},
		{"watch", "The host memory is full", "Diagnose says", "is-it-the-gc", func() { now.Sources[0].Live = 0 }},
		{"good", "Healthy: 0 B live of 1000 B (0 %); in the last minute 0 cycles", "", "", func() {}},
	} {
		got := healthOf(now)
		if got.Level != tc.level || !strings.Contains(got.Text, tc.text) || !strings.Contains(got.Do, tc.do) || (tc.do == "") != (got.Do == "") ||
			got.See != strings.TrimSuffix(guide+tc.see, guide) {
			t.Errorf("%+v, want %s %q: %q, %s", got, tc.level, tc.text, tc.do, tc.see)
		}
		if part, ok := strings.CutPrefix(got.See, guide); ok && !strings.Contains(parts, "\n##-"+part+"\n") {
			t.Errorf("EMBEDDING.md has no part %s", part)
		}
		tc.mend()
	}
}

func TestMostPressed(t *testing.T) {
	for _, tc := range []struct {
		all  []space
		want string
	}{
		{[]space{{"a", 1, 9, 0}, {"b", 3, 0, 0}, {"c", 2, 8, 0}}, "b"},
		{[]space{{"a", 3, 0, 0}, {"b", 3, 9, 0}}, "a"},
		{[]space{{"a", 900, 0, 0}, {"b", 1, 0, 100}}, "b"},
		{[]space{{"a", 0, 0, 100}, {"b", 900, 0, 0}}, "a"},
		{[]space{{"a", 50, 99, 100}, {"b", 600, 700, 1000}, {"c", 7, 9, 14}}, "b"},
		{[]space{{"a", 500, 0, 1000}, {"b", 5, 9, 10}}, "a"},
		{[]space{{"a", 0, 0, 1}, {"b", 1, 0, 1 << 40}}, "b"},
	} {
		if got := mostPressed(tc.all); got == nil || got.Name != tc.want {
			t.Errorf("%+v: %+v, want %s", tc.all, got, tc.want)
		}
	}
	if got := mostPressed(nil); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 499: "0s", 500: "1µs", 123456: "123µs", 999499: "999µs", 999500: "1ms",
		1003 * time.Microsecond: "1ms", 1015 * time.Microsecond: "1.02ms", 1234567: "1.23ms", 123_456_789: "123.46ms", 999_993_000: "999.99ms",
		1003 * time.Millisecond: "1s", 1015 * time.Millisecond: "1.02s", 1_234_567_890: "1.23s", 71*time.Second + 5*time.Millisecond: "1m11.01s",
	} {
		if got := shortly(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
	for f, want := range map[float64]string{0: "0 %", 1e-7: "0.00001 %", 0.00123: "0.12 %", 0.035: "3.5 %", 0.354: "35 %", 0.994: "99 %", 0.996: "100 %", 1: "100 %", 2.5: "250 %", 12.34: "1200 %"} {
		if got := percent(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	for n, want := range map[any]string{0: "0 pauses", 1: "1 pause", uint64(1): "1 pause", 2: "2 pauses", 11: "11 pauses"} {
		if got := count(n, "pause"); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

// The lengths from the first that there was to the last, and those between them.
func TestPauses(t *testing.T) {
	last := len(gc.Stats{}.Pauses) - 1
	for _, tc := range []struct {
		were map[int]uint64
		want pauses
	}{
		{nil, pauses{}},
		{map[int]uint64{0: 3}, pauses{3, 3, []length{{3, "at most 100µs"}}}},
		{map[int]uint64{2: 5, 4: 1}, pauses{6, 5, []length{{5, "at most 500µs"}, {0, "at most 1ms"}, {1, "at most 2ms"}}}},
		{map[int]uint64{2: 1, 3: 5}, pauses{6, 5, []length{{1, "at most 500µs"}, {5, "at most 1ms"}}}},
		{map[int]uint64{last - 1: 1, last: 2}, pauses{3, 2, []length{{1, "at most 10s"}, {2, "longer"}}}},
	} {
		var s gc.Stats
		for i, n := range tc.were {
			s.Pauses[i] = n
		}
		if got := pausesOf(&s); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%v: %+v, want %+v", tc.were, got, tc.want)
		}
	}
}

// What a chart spans, what its marks say, and whose they are.
func TestChartsOf(t *testing.T) {
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	level := func(at float64) gc.Level { return gc.Level{Start: second(at)} }
	of := func(work []gc.Work, levels ...gc.Level) *gc.Snapshot {
		return &gc.Snapshot{Now: second(100), Step: second(2), Sources: []gc.Watched{{Levels: levels}}, Work: work}
	}
	mark := func(at float64, cycles ...uint32) gc.Work {
		w := gc.Work{Start: second(at), Freed: 3 << 10, Held: 5 * time.Millisecond, Longest: second(1)}
		copy(w.Cycles[:], cycles)
		return w
	}
	for _, tc := range []struct {
		name   string
		now    *gc.Snapshot
		span   float64
		events []event
		about  string
	}{
		{"one point, at the end", of(nil, level(100)), 1, nil, "1 s: from 0 B to 0 B; 0 cycles"},
		{"a clock that was read late", of(nil, level(101)), 1, nil, "1 s: from 0 B to 0 B; 0 cycles"},
		{"a hold is no mark", of([]gc.Work{mark(50)}, level(90)), 10, nil, "10 s: from 0 B to 0 B; 0 cycles"},
		{"a mark in the middle of its step", of([]gc.Work{mark(94, 1)}, level(90)), 10, []event{{5, "policy", "5.0 s ago: 1 policy; freed 3.00 KiB, callers held for 5ms"}}, "10 s: from 0 B to 0 B; 1 cycle"},
		{"a mark before the first point", of([]gc.Work{mark(79, 0, 0, 2), mark(94, 0, 0, 0, 3)}, level(90), level(95)), 20,
			[]event{{20, "natural", "20.0 s ago: 2 natural; freed 3.00 KiB, callers held for 5ms"}, {5, "explicit", "5.0 s ago: 3 explicit; freed 3.00 KiB, callers held for 5ms"}}, "20 s: from 0 B to 0 B; 5 cycles"},
		{"a mark of a step that goes on", of([]gc.Work{mark(99.5, 4, 3, 2, 1)}, level(90)), 10, []event{{0, "refusal", "0.0 s ago: 3 refusal, 4 policy, 1 explicit, 2 natural; freed 3.00 KiB, callers held for 5ms"}}, "10 s: from 0 B to 0 B; 10 cycles"},
		{"policy before explicit", of([]gc.Work{mark(98, 1, 0, 1, 1)}, level(90)), 10, []event{{1, "policy", "1.0 s ago: 1 policy, 1 explicit, 1 natural; freed 3.00 KiB, callers held for 5ms"}}, "10 s: from 0 B to 0 B; 3 cycles"},
		{"explicit before natural", of([]gc.Work{mark(98, 0, 0, 1, 1)}, level(90)), 10, []event{{1, "explicit", "1.0 s ago: 1 explicit, 1 natural; freed 3.00 KiB, callers held for 5ms"}}, "10 s: from 0 B to 0 B; 2 cycles"},
	} {
		got := chartsOf(tc.now)
		if c := got[0]; len(got) != 1 || c.Span != tc.span || c.Step != 2 || !reflect.DeepEqual(c.Events, tc.events) || c.About != "Live memory of host over the last "+tc.about+"." {
			t.Errorf("%s: %+v", tc.name, c)
		}
	}
	got := chartsOf(busy())
	if len(got) != 2 || got[0].Name != pressure.Device(1).String() || got[1].Name != "host" {
		t.Fatalf("%+v", got)
	}
	c := got[0]
	if fmt.Sprint(c.Live, c.Reserved, c.Limit, c.Span, c.Step) != "402 405 406 79 2" {
		t.Errorf("%+v", c)
	}
	if want := [][6]float64{{20, 201, 202, 200, 204, 205}, {18, 301, 302, 300, 304, 305}, {2, 401, 402, 250, 404, 405}}; !reflect.DeepEqual(c.Levels, want) {
		t.Errorf("%v, want %v", c.Levels, want)
	}
	if !strings.Contains(c.About, "from 200 B to 404 B; 25 cycles") {
		t.Error(c.About)
	}
}
