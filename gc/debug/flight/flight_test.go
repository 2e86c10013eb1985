package flight_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/gc/debug/flight"
	"github.com/eagergc/eagergc/trace"
)

func newRecorder(t *testing.T, c flight.Config) *flight.Recorder {
	t.Helper()
	r, err := flight.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, r *flight.Recorder) *trace.Trace {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteRecording(&out); err != nil {
		t.Fatal(err)
	}
	got, err := trace.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestNegativeBoundsAreRefused(t *testing.T) {
	for _, c := range []flight.Config{{Last: -1}, {Events: -1}} {
		want := fmt.Sprintf("flight: keep %d events of the last %v: want 0 or more of both", c.Events, c.Last)
		if r, err := flight.New(c); r != nil || err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

// Whatever is recorded, objects that are allocated twice, freed twice or never allocated included, the last minutes are a recording
// that validates. Its objects live at the end are those of the program; its end is the program's event for event, at most as long as
// the bounds say, give or take what is written at once; and how sites were sampled is not forgotten.
func TestTheLastMinutesAreARecording(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		cfg := flight.Config{Last: time.Duration(1 + r.Int64N(3000)), Events: 1 + r.IntN(400)}
		began := time.Now()
		rec := newRecorder(t, cfg)
		rec.Record(trace.Event{Kind: trace.Mark, Bytes: 4096, Aux: rec.Label(trace.SiteRateLabel)})
		live := map[uint64]int64{}
		all := []trace.Event{{}}
		now, id := int64(0), uint64(0)
		for range r.IntN(60) {
			place := rec.Label(fmt.Sprint("place ", r.IntN(9)))
			for range 1 + r.IntN(30) {
				now += r.Int64N(10)
				e := trace.Event{Time: now, Kind: trace.Sync, Duration: 1, Aux: place}
				switch k := r.IntN(20); {
				case k == 0 && id > 0: // of an object that is gone, or allocated already
					again := 1 + r.Uint64N(id)
					rec.Record(trace.Event{Time: now, Kind: trace.Alloc, ID: again, Bytes: 9})
					if live[again] == 0 {
						rec.Record(trace.Event{Time: now, Kind: trace.Free, ID: again, Bytes: 9})
					}
					continue
				case k == 1:
					rec.Record(trace.Event{Time: now, Kind: trace.Free, ID: 1 << 40, Bytes: 5})
					continue
				case k < 8:
					id++
					e = trace.Event{Time: now, Kind: trace.Alloc, ID: id, Bytes: 1 + r.Int64N(1000), Aux: place}
					live[id] = e.Bytes
				case k < 13:
					for x, bytes := range live {
						e = trace.Event{Time: now, Kind: trace.Free, ID: x, Bytes: bytes, Aux: trace.FreeCycle}
						delete(live, x)
						break
					}
				}
				all = append(all, e)
				rec.Record(e)
			}
			if err := rec.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		for _, closed := range []bool{false, true} {
			if closed {
				if err := rec.Close(); err != nil {
					t.Fatal(err)
				}
			}
			got := read(t, rec)
			if err := got.Validate(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got.Name != "last" || fmt.Sprint(got.Meta) != "map[clock:monotonic lost:0 source:gc/debug/flight]" || got.Start.Before(began.Add(-time.Millisecond)) || time.Since(got.Start) > time.Minute {
				t.Errorf("%q %v %v", got.Name, got.Meta, got.Start)
			}
			left, rate, first := map[uint64]int64{}, false, -1
			for i, e := range got.Events {
				switch e.Kind {
				case trace.Alloc:
					left[e.ID] = e.Bytes
				case trace.Free:
					delete(left, e.ID)
				case trace.Mark:
					rate = rate || e.Bytes == 4096 && got.Label(e) == trace.SiteRateLabel
				}
				if first < 0 && e.Time > 0 {
					first = i
				}
			}
			if fmt.Sprint(left) != fmt.Sprint(live) || !rate {
				t.Fatalf("seed %d: live %v, want %v; the rate of sites: %v", seed, left, live, rate)
			}
			if first < 0 {
				continue
			}
			end := got.Events[first:]
			if n := len(end); n > cfg.Events+100 || n < len(all)-1 && n < cfg.Events-100 && end[n-1].Time < int64(cfg.Last)-300 || end[n-1].Time > int64(cfg.Last)+300 {
				t.Fatalf("seed %d: %d events of %d ns, want %d of %v", seed, n, end[n-1].Time, cfg.Events, cfg.Last)
			}
			kinds := func(events []trace.Event, back int64) (text string) {
				for _, e := range events {
					text += fmt.Sprintln(e.Kind, e.ID, e.Bytes, e.Time-back)
				}
				return text
			}
			last := all[len(all)-1].Time
			if tail := kinds(end, end[len(end)-1].Time); last > 0 && end[len(end)-1].Kind == all[len(all)-1].Kind && !strings.HasSuffix(kinds(all, last), tail) && len(end) < 20 {
				t.Fatalf("seed %d: the end is\n%s", seed, tail)
			}
		}
	}
}

// A full is a disk without room.
type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

// The report says how much is kept; a writer's errors are returned.
func TestReport(t *testing.T) {
	r := newRecorder(t, flight.Config{})
	defer r.Close()
	report := func() string {
		var out strings.Builder
		if err := r.Report(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := report(), "The last 0s: 0 events, about 0 B of memory; 0 lost since the start.\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := range 1024 {
		r.Record(trace.Event{Time: int64(i) * 1_234_567, Kind: trace.Alloc, ID: uint64(i + 1), Bytes: 1})
	}
	if got, want := report(), fmt.Sprintf("The last 1.263s: 1024 events, about %d.00 KiB of memory; 0 lost since the start.\n", unsafe.Sizeof(trace.Event{})); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	began := time.Now()
	few := newRecorder(t, flight.Config{Events: 100})
	made := time.Now()
	defer few.Close()
	for i := range 1024 { // 64 at once, of which the last two stay
		if few.Record(trace.Event{Time: int64(i) * 1_000_000, Kind: trace.Sync, Duration: 1}); i%64 == 63 {
			if err := few.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out strings.Builder
	if err := few.Report(&out); err != nil || !strings.HasPrefix(out.String(), "The last 64ms: 64 events") {
		t.Errorf("%s, %v", out.String(), err)
	}
	end := 1023 * time.Millisecond // of the recording, whose start moves with what is forgotten
	got := read(t, few)
	last := got.Start.Add(time.Duration(got.Events[len(got.Events)-1].Time))
	if slack := time.Millisecond; last.Before(began.Add(end-slack)) || last.After(made.Add(end+slack)) {
		t.Errorf("the last event is at %v, want %v after the start at %v", last, end, began)
	}
	if err := r.WriteRecording(full{}); !errors.Is(err, errFull) {
		t.Errorf("recording: %v", err)
	}
	if err := r.Report(full{}); !errors.Is(err, errFull) {
		t.Errorf("report: %v", err)
	}
}
