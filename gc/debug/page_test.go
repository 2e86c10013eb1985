package debug

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/internal/registry"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

var write = flag.String("write", "", "a directory for the outputs that TestPage, TestScript and others compare by their digests")

// digests are those of outputs that somebody has read. If one changes, run the tests of this and of the last commit
// with -write and two directories, and compare what they have written.
var digests = map[string]string{
	"busy.html": "804ab95d4f3b", "busy.json": "b1e7482eca4d", "failed.html": "4e6e130554b3", "failed.json": "49d1c36e864c",
	"painted.txt": "ae5305fceb8b", "verdicts.txt": "d09f826041cf", "diagnosis.txt": "6542cca53a5f", "blocked.txt": "60a88bc7e8ca",
}

// golden compares the digest of an output.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if sum := fmt.Sprintf("%.6x", sha256.Sum256(got)); sum != digests[name] {
		t.Errorf("%s has changed: its digest is %s", name, sum)
	}
	if *write != "" {
		if err := os.WriteFile(filepath.Join(*write, name), got, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// fourProcessors makes shares of processor time the same on all machines.
func fourProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// busy is a collector two minutes after its start. Its numbers all differ, so that the page cannot
// confuse two of them.
func busy() *gc.Snapshot {
	stats := gc.Stats{
		Work: gc.Work{
			Cycles: [4]uint64{11, 12, 13, 14}, Freed: 18 << 20,
			Busy: 20 * time.Millisecond, Processor: 21 * time.Millisecond, Exposed: 22 * time.Millisecond, MaxPause: 23 * time.Millisecond,
		},
		Decisions: [3]uint64{15, 16, 17}, Objects: 19,
		Tracked: 24, Cost: 25 * time.Millisecond, Slowdown: 0.26, Failures: 27, Overtaken: 29, Pending: 30,
	}
	stats.Pauses[2], stats.Pauses[4], stats.Pauses[len(stats.Pauses)-1] = 32, 34, 33
	return &gc.Snapshot{
		Now: 2 * time.Minute, Policy: "cudajl", Caps: gc.Caps{Cycles: 0.25, Held: 0.05}, Stats: stats, Step: 2 * time.Second,
		Sources: []gc.Watched{
			{Sample: pressure.Sample{Space: pressure.Device(1), Live: 1001, Reserved: 1002, Limit: 1003}, Settled: 1004, Levels: []gc.Level{
				{Start: 100 * time.Second, First: 201, Last: 202, Least: 200, Most: 204, Reserved: 205, Limit: 206},
				{Start: 102 * time.Second, First: 301, Last: 302, Least: 300, Most: 304, Reserved: 305, Limit: 306},
				{Start: 118 * time.Second, First: 401, Last: 402, Least: 250, Most: 404, Reserved: 405, Limit: 406},
			}},
			{Sample: pressure.Sample{Live: 501, Reserved: 502}, Worth: "cycles are worth it", Levels: []gc.Level{{Start: 119 * time.Second, First: 503, Last: 504, Least: 505, Most: 506, Reserved: 507}}},
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
		Reasons: map[string]uint64{"at a wait": 51, "below <threshold>": 52, "capped": 28},
		Work: []gc.Work{
			{Start: 40 * time.Second, Cycles: [4]uint64{1, 9, 0, 0}, Freed: 41, Exposed: 42, MaxPause: 43},
			{Start: 104 * time.Second, Cycles: [4]uint64{2, 1, 4, 3}, Busy: 44 * time.Millisecond, Processor: 2400 * time.Millisecond, Freed: 45 << 10, Exposed: 4600 * time.Millisecond, MaxPause: 47 * time.Millisecond},
			{Start: 110 * time.Second, Busy: 53, Exposed: 1400 * time.Millisecond, MaxPause: 48 * time.Millisecond},
			{Start: 112 * time.Second, Cycles: [4]uint64{0, 0, 5, 0}, Freed: 49 << 10, Processor: 2400 * time.Millisecond},
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

// The digests leave out styles and script: see TestScript.
var leaveOut = regexp.MustCompile(`(?s)(<style nonce="NONCE">).*(</style>)|(<script nonce="NONCE">).*(</script>)`)

// TestPage renders a working collector, and one that has failed and watches nothing.
func TestPage(t *testing.T) {
	fourProcessors(t)
	for _, set := range pressure.SetVariables(os.Environ()) {
		t.Setenv(set[:strings.Index(set, "=")], "")
	}
	t.Setenv("EAGERGC_DEVICE1_HARD_MEMORY_LIMIT", "2GiB")
	failed := &gc.Snapshot{Now: time.Second, Policy: "never", Running: true, Err: errors.New("gc: the policy has panicked: <oops>")}
	for name, of := range map[string]struct {
		now *gc.Snapshot
		h   *handler
	}{
		"busy":   {busy(), &handler{token: "TOKEN", reports: []Reporter{report("pool: <fine>\n"), half{}}}},
		"failed": {failed, &handler{token: "T"}},
	} {
		got, err := of.h.render(of.now, "NONCE")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".html", leaveOut.ReplaceAll(got, []byte("$1$2$3$4")))
		text, err := json.Marshal(of.h.status(of.now))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", text)
	}
}

// TestTheVerdictOfASnapshot is the worst of what the last minute shows and of what package gc/auto says of the process. Its
// whole text is in the digest.
func TestTheVerdictOfASnapshot(t *testing.T) {
	fourProcessors(t)
	work := func(w gc.Work) []gc.Work { w.Start = 100 * time.Second; return []gc.Work{w} }
	cycles := func(refusal, policy, natural uint64) []gc.Work {
		return work(gc.Work{Cycles: [4]uint64{policy, refusal, natural}, Freed: 3 << 20, Processor: 240 * time.Millisecond})
	}
	memories := func(pairs ...int64) (all []gc.Watched) { // live and limit of each
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, gc.Watched{Sample: pressure.Sample{Space: pressure.Space(i), Live: pairs[i], Limit: pairs[i+1]}})
		}
		return all
	}
	full, early := memories(5, 100, 96, 100), 20*time.Second
	var all strings.Builder
	for _, test := range []struct {
		verdict string
		s       gc.Snapshot
	}{
		{"nothing wrong", gc.Snapshot{}},
		{"nothing wrong", gc.Snapshot{Now: early, Step: 1, Work: []gc.Work{{Cycles: [4]uint64{1}, Processor: 80 * time.Millisecond}}}},
		{"panic contained", gc.Snapshot{Policy: "never", Err: errors.New("x"), Stats: gc.Stats{OverLimit: true}}},
		{"finalizers blocked", gc.Snapshot{Err: registry.Blocked("gc: 16 releases do not return")}},
		{"collector closed", gc.Snapshot{Closed: true, Err: errors.New("x")}},
		{"over the limit", gc.Snapshot{Stats: gc.Stats{OverLimit: true}, Sources: full}},
		{"refusals", gc.Snapshot{Work: cycles(1, 1, 1234)}},
		{"nothing wrong", gc.Snapshot{Work: cycles(1, 2, 0)}},
		{"callers held", gc.Snapshot{Work: work(gc.Work{Exposed: 3001 * time.Millisecond, MaxPause: 12345678})}},
		{"nothing wrong", gc.Snapshot{Work: work(gc.Work{Exposed: 3000 * time.Millisecond})}},
		{"cycles at their cap", gc.Snapshot{Work: work(gc.Work{Processor: 54001 * time.Millisecond})}},
		{"nothing wrong", gc.Snapshot{Work: work(gc.Work{Processor: 54 * time.Second})}},
		{"nothing wrong", gc.Snapshot{Work: work(gc.Work{Processor: 300 * time.Second}), Caps: gc.Caps{Cycles: 1}}},
		{"near the limit", gc.Snapshot{Sources: full}},
		{"nothing wrong", gc.Snapshot{Sources: memories(7, 0, 95, 100, 9, 0, 3, 10)}},
		{"nothing wrong", gc.Snapshot{Sources: memories(7, 0, 9, 0, 8, 0)}},
		{"nothing wrong", gc.Snapshot{Sources: memories(7, 0, 0, 5, 9, 0)}},
		{"growth outside Go", gc.Snapshot{Sources: full, Process: gc.Finding{Level: "bad", Verdict: "growth outside Go"}}},
		{"near the limit", gc.Snapshot{Sources: full, Process: gc.Finding{Level: "watch", Verdict: "allocator retention"}}},
	} {
		if test.s.Now == 0 {
			test.s.Now, test.s.Step = 130*time.Second, time.Millisecond
		}
		if test.s.Caps.Cycles == 0 {
			test.s.Caps.Cycles = 0.25
		}
		f := Verdict(&test.s)
		if fmt.Fprintf(&all, "%q\n", f); f.Verdict != test.verdict {
			t.Errorf("want %s: %+v", test.verdict, f)
		}
	}
	golden(t, "verdicts.txt", []byte(all.String()))
}
