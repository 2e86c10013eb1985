package sim

import (
	"reflect"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

func sawtooth(t testing.TB, n int) *Workload {
	t.Helper()
	tr := &trace.Trace{Name: "sawtooth"}
	for i := range n {
		now := int64(i) * 1000
		tr.Record(trace.Event{Time: now, ID: uint64(i), Kind: trace.Alloc, Bytes: 100})
		tr.Record(trace.Event{Time: now + 500, ID: uint64(i), Kind: trace.Drop})
		if i%10 == 9 {
			tr.Record(trace.Event{Time: now + 600, Kind: trace.Sync, Duration: 300})
		}
	}
	w, err := Compile(tr, pressure.Host)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestLatencies(t *testing.T) {
	w := sawtooth(t, 40) // four steps of 10 us, the first from 0 to its sync's end at 9900
	l := &Log{Pauses: []Pause{{Trace: 12000, Length: 5000}}}
	simple := w.Latencies(l, 0)
	if want := []time.Duration{9900, 10000, 10000, 15000}; !reflect.DeepEqual(simple, want) {
		t.Errorf("simple %v, want %v", simple, want)
	}
	// A pause at the end of a wait is the end of its step, and each is in one step.
	if got := w.Latencies(&Log{Pauses: []Pause{{Trace: 9900, Length: 100}, {Trace: 9901, Length: 200}}}, 0); !reflect.DeepEqual(got, []time.Duration{10000, 10000, 10000, 10200}) {
		t.Errorf("with pauses at the end of the first step and after it: %v", got)
	}
	// The four begin at 0, 9900, 24900 and 34900. At equal distances the third would
	// begin 2/3 of the way from the first to the last, and within 20 us on each side
	// halfway from the second to the last.
	for window, third := range map[time.Duration]time.Duration{time.Hour: 34900 - 23267, 40 * time.Microsecond: 34900 - 22400} {
		if got, want := w.Latencies(l, window), []time.Duration{9900, 10000, third, 15000}; !reflect.DeepEqual(got, want) {
			t.Errorf("within %v %v, want %v", window, got, want)
		}
	}
}
