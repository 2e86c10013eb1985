package perfetto_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/perfetto"
	"github.com/eagergc/eagergc/trace/formats/recording"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// A row is one event as the Trace Event Format documents it.
type row struct {
	Phase string          `json:"ph"`
	Name  *string         `json:"name"`
	Time  json.Number     `json:"ts"`
	Dur   json.Number     `json:"dur"`
	Pid   *int            `json:"pid"`
	Tid   *int            `json:"tid"`
	Cat   string          `json:"cat"`
	Scope string          `json:"s"`
	Args  json.RawMessage `json:"args"`
}

// rows writes tr and holds every event to the documented schema: the phases
// used, the fields that each wants, and that slices of a thread nest.
func rows(t *testing.T, tr *trace.Trace) []row {
	t.Helper()
	var b bytes.Buffer
	if err := perfetto.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Unit   string            `json:"displayTimeUnit"`
		Other  map[string]string `json:"otherData"`
		Events []row             `json:"traceEvents"`
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.Unit != "ns" || file.Other["name"] != tr.Name {
		t.Errorf("unit %q, other data %v", file.Unit, file.Other)
	}
	type thread struct{ pid, tid int }
	open, named := map[thread][]float64{}, map[thread]bool{}
	for i, r := range file.Events {
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("event %d %+v: %s", i, r, fmt.Sprintf(format, args...))
		}
		if r.Name == nil || r.Pid == nil || r.Tid == nil {
			fail("no name, pid or tid")
		}
		ts, err := r.Time.Float64()
		if err != nil {
			fail("ts: %v", err)
		}
		at := thread{*r.Pid, *r.Tid}
		switch r.Phase {
		case "M":
			var args struct{ Name string }
			if json.Unmarshal(r.Args, &args) != nil || args.Name == "" || *r.Name != "process_name" && *r.Name != "thread_name" {
				fail("metadata")
			}
			if *r.Name == "process_name" {
				at.tid = -1
			}
			named[at] = true
			continue
		case "C":
			var args map[string]int64
			if json.Unmarshal(r.Args, &args) != nil || len(args) != 1 || args["bytes"] < 0 {
				fail("counter")
			}
		case "i":
			if r.Scope != "t" || r.Cat == "" {
				fail("instant")
			}
		case "X":
			dur, err := r.Dur.Float64()
			if err != nil || dur < 0 || r.Cat == "" {
				fail("slice: %v", err)
			}
			ends := open[at]
			for len(ends) > 0 && ends[len(ends)-1] <= ts {
				ends = ends[:len(ends)-1]
			}
			if len(ends) > 0 && ts+dur > ends[len(ends)-1]+1e-3 {
				fail("overlaps a slice that ends at %f", ends[len(ends)-1])
			}
			open[at] = append(ends, ts+dur)
		default:
			fail("phase")
		}
		if !named[thread{*r.Pid, -1}] || r.Phase != "C" && !named[at] {
			fail("its process or thread has no name")
		}
	}
	return file.Events
}

func TestWrite(t *testing.T) {
	tr, err := recording.ReadText(strings.NewReader(`
name "run"
meta "policy" "cudajl"
0 reserve bytes=4096 space=device0
0 alloc id=1 bytes=100 space=device0
1500 drop id=1 bytes=100 space=device0
2000 sync space=device0 duration=10000 stream=3 label="item"
3000 sync space=device0 duration=20000 stream=3
4000 decision bytes=2 space=device0 label="over \"5 %\""
5000 cycle bytes=100 space=device0 duration=999 aux=2
6000 free id=1 bytes=100 space=device0 aux=1
7000 refuse bytes=9 space=device0 duration=5 aux=4
8000 mark label="epoch"
8001 mark duration=7 label="step"
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows(t, tr) {
		got = append(got, fmt.Sprintf("%s %d/%d %s %s %s %s", r.Phase, *r.Pid, *r.Tid, r.Time, *r.Name, r.Dur, r.Args))
	}
	want := []string{
		`M 4/0 0.000 process_name  {"name":"device0"}`,
		`C 4/0 0.000 reachable  {"bytes":100}`,
		`C 4/0 0.000 reserved  {"bytes":4096}`,
		`C 4/0 1.500 reachable  {"bytes":0}`,
		`C 4/0 1.500 garbage  {"bytes":100}`,
		`M 4/1 0.000 thread_name  {"name":"syncs of stream 3"}`,
		`X 4/1 2.000 item 10.000 {}`,
		`M 4/2 0.000 thread_name  {"name":"syncs of stream 3"}`,
		`X 4/2 3.000 sync 20.000 {}`,
		`M 4/3 0.000 thread_name  {"name":"decisions"}`,
		`i 4/3 4.000 over "5 %"  {"action":"block"}`,
		`M 4/4 0.000 thread_name  {"name":"cycles"}`,
		`X 4/4 5.000 cycle 0.999 {"freed_bytes":100,"trigger":"natural"}`,
		`C 4/0 6.000 garbage  {"bytes":0}`,
		`M 4/5 0.000 thread_name  {"name":"refusals"}`,
		`X 4/5 7.000 refuse 0.005 {"bytes":9,"step":4}`,
		`M 1/0 0.000 process_name  {"name":"host"}`,
		`M 1/1 0.000 thread_name  {"name":"marks"}`,
		`i 1/1 8.000 epoch  {}`,
		`X 1/1 8.001 step 0.007 {}`,
	}
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("row %d:\ngot  %s\nwant %s", i, g, w)
		}
	}
}

// TestNames: this package does not import gc, whose words it uses.
func TestNames(t *testing.T) {
	for a := policy.Skip; a <= policy.Block; a++ {
		tr := &trace.Trace{Labels: []string{""}, Events: []trace.Event{{Kind: trace.Decision, Bytes: int64(a)}}}
		if r := rows(t, tr); !strings.Contains(string(r[len(r)-1].Args), `"`+a.String()+`"`) {
			t.Errorf("action %v: %s", a, r[len(r)-1].Args)
		}
	}
	for c := policy.TriggerPolicy; c <= policy.TriggerExplicit; c++ {
		tr := &trace.Trace{Events: []trace.Event{{Kind: trace.Cycle, Aux: uint32(c)}}}
		if r := rows(t, tr); !strings.Contains(string(r[len(r)-1].Args), `"`+c.String()+`"`) {
			t.Errorf("trigger %v: %s", c, r[len(r)-1].Args)
		}
	}
}

// TestSamples holds the counters of real workloads to their peaks.
func TestSamples(t *testing.T) {
	for _, name := range []string{"resnet"} {
		tr, err := samples.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s, peak, syncs := recording.StatsOf(tr), 0., 0
		for _, r := range rows(t, tr) {
			if r.Phase == "C" && *r.Name == "reachable" {
				var args map[string]float64
				if err := json.Unmarshal(r.Args, &args); err != nil {
					t.Fatal(err)
				}
				peak = math.Max(peak, args["bytes"])
			}
			if r.Phase == "X" && r.Cat == "sync" {
				syncs++
			}
		}
		if syncs != s.Syncs || peak > float64(s.PeakReachable) || peak < 0.99*float64(s.PeakReachable) {
			t.Errorf("%s: %d syncs and a peak of %.0f, want %d and %d", name, syncs, peak, s.Syncs, s.PeakReachable)
		}
	}
}

func TestWriteError(t *testing.T) {
	full := errors.New("disk full")
	if err := perfetto.Write(failing{full}, &trace.Trace{}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A mark tells its number.
func TestNumberOfAMark(t *testing.T) {
	tr := &trace.Trace{Name: "t", Labels: []string{"", gc.ProcessorsLabel}}
	tr.Record(trace.Event{Kind: trace.Mark, Bytes: 16, Aux: 1})
	r := rows(t, tr)
	if last := r[len(r)-1]; *last.Name != gc.ProcessorsLabel || string(last.Args) != `{"value":16}` {
		t.Errorf("%s %s", *last.Name, last.Args)
	}
}
