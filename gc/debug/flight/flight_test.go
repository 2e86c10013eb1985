package flight

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// usual is a recorder that keeps the usual amount.
func usual(t *testing.T) *Recorder {
	t.Helper()
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNegative(t *testing.T) {
	for _, c := range []Config{{Last: -1}, {Events: -1}, {Last: -time.Minute, Events: 4}} {
		want := fmt.Sprintf("flight: keep %d events of the last %v: want 0 or more of both", c.Events, c.Last)
		if r, err := New(c); r != nil || err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

// What was recorded is read back from the file, with its name, its origin and the time at which it began; also after Close.
func TestWriteRecording(t *testing.T) {
	before := time.Now()
	r := usual(t)
	after := time.Now()
	r.Record(trace.Event{Time: 5, Kind: trace.Alloc, ID: 7, Bytes: 100, Aux: r.Label("place")})
	r.Record(trace.Event{Time: 9, Kind: trace.Free, ID: 7, Bytes: 100, Aux: trace.FreeCycle})
	for _, closed := range []bool{false, true} {
		if closed {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := r.WriteRecording(&out); err != nil {
			t.Fatal(err)
		}
		got, err := trace.Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "last" || fmt.Sprint(got.Meta) != "map[clock:monotonic lost:0 source:gc/debug/flight]" {
			t.Errorf("%q %v", got.Name, got.Meta)
		}
		if len(got.Events) != 2 || got.Events[0].ID != 7 || got.Events[0].Time != 5 || got.Label(got.Events[0]) != "place" || got.Events[1].Kind != trace.Free {
			t.Errorf("%+v", got.Events)
		}
		if got.Start.Before(before.Truncate(time.Microsecond)) || got.Start.After(after) {
			t.Errorf("began at %v, want %v to %v", got.Start, before, after)
		}
	}
}

// A full is a disk without room.
type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

// Errors of the writer that is given are returned, and those of the recorder itself.
func TestErrors(t *testing.T) {
	r := usual(t)
	r.Record(trace.Event{Kind: trace.Alloc, ID: 1, Bytes: 1})
	if err := r.WriteRecording(full{}); !errors.Is(err, errFull) {
		t.Errorf("recording: %v", err)
	}
	if err := r.Report(full{}); !errors.Is(err, errFull) {
		t.Errorf("report: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	failed := &Recorder{trace.NewRecorder(failing{}, trace.RecorderConfig{}), newWindow(Config{}), time.Now()}
	failed.Record(trace.Event{Kind: trace.Alloc, ID: 1, Bytes: 1})
	var out bytes.Buffer
	if err := failed.WriteRecording(&out); !errors.Is(err, errFull) || out.Len() > 0 {
		t.Errorf("recording of one that has failed: %v, %d bytes", err, out.Len())
	}
	if err := failed.Report(&out); !errors.Is(err, errFull) || out.Len() > 0 {
		t.Errorf("report of one that has failed: %v, %s", err, out.Bytes())
	}
	if err := failed.Close(); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) WriteBatch([]trace.Event, []string) (int, error) { return 0, errFull }
func (failing) Close() error                                    { return nil }

func TestReport(t *testing.T) {
	r := usual(t)
	defer r.Close()
	report := func() string {
		var out bytes.Buffer
		if err := r.Report(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := report(), "The last 0s: 0 events, about 0 B of memory; 0 lost since the start.\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := range 100 {
		r.Record(trace.Event{Time: int64(i) * 12_345_678, Kind: trace.Alloc, ID: uint64(i + 1), Bytes: 1})
	}
	if got, want := report(), "The last 1.222s: 100 events, about 4.69 KiB of memory; 0 lost since the start.\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if size := unsafe.Sizeof(trace.Event{}); size != eventBytes {
		t.Errorf("an event takes %d bytes, not %d", size, eventBytes)
	}
}

// What came faster than it was written is counted, in the report and in the recording.
func TestLost(t *testing.T) {
	r := usual(t)
	defer r.Close()
	r.window.mu.Lock() // the writer waits
	for i := range 4 << 16 {
		r.Record(trace.Event{Time: int64(i), Kind: trace.Sync, Duration: 1})
	}
	r.window.mu.Unlock()
	if err := r.Flush(); err != nil || r.Lost() == 0 {
		t.Fatal(r.Lost(), err)
	}
	var report, recording bytes.Buffer
	if err := errors.Join(r.Report(&report), r.WriteRecording(&recording)); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("; %d lost since the start.", r.Lost()); !bytes.Contains(report.Bytes(), []byte(want)) {
		t.Errorf("%s, want %s", report.Bytes(), want)
	}
	got, err := trace.Read(&recording)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.ParseInt(got.Meta["lost"], 10, 64); n != r.Lost() {
		t.Errorf("%v, want %d lost", got.Meta, r.Lost())
	}
}

// at are events at the times given, each of an object of its own.
func at(first uint64, times ...int64) (events []trace.Event) {
	for i, now := range times {
		events = append(events, trace.Event{Time: now, Kind: trace.Alloc, ID: first + uint64(i), Bytes: 1})
	}
	return events
}

// How much a window keeps: whole batches, at most so many events, of so long; the last batch always.
func TestHowMuchIsKept(t *testing.T) {
	defaults := newWindow(Config{}).cfg
	if defaults != (Config{Last: 5 * time.Minute, Events: 262144}) {
		t.Errorf("usually %+v", defaults)
	}
	if mb := fmt.Sprintf("%.1f", float64(defaults.Events*eventBytes)/1e6); mb != "12.6" {
		t.Errorf("events take %s MB", mb)
	}
	for _, tc := range []struct {
		cfg     Config
		batches [][]trace.Event
		events  int
		span    time.Duration
	}{
		{Config{}, nil, 0, 0},
		{Config{}, [][]trace.Event{{}}, 0, 0},
		{Config{}, [][]trace.Event{at(1, 10, 30)}, 2, 30},
		{Config{Events: 4}, [][]trace.Event{at(1, 10, 20), at(3, 30, 40)}, 4, 40},
		{Config{Events: 3}, [][]trace.Event{at(1, 10, 20), at(3, 30, 40)}, 2, 20},
		{Config{Events: 2}, [][]trace.Event{at(1, 10, 20, 25), at(4, 30), at(5, 40)}, 2, 15},
		{Config{Events: 1}, [][]trace.Event{at(1, 10, 20), at(3, 30, 40)}, 2, 20},
		{Config{Last: 30}, [][]trace.Event{at(1, 0, 10), at(3, 20, 40)}, 4, 40},
		{Config{Last: 29}, [][]trace.Event{at(1, 0, 10), at(3, 20, 40)}, 2, 30},
		{Config{Last: 5}, [][]trace.Event{at(1, 10), at(2, 20), at(3, 30, 40)}, 2, 20},
		{Config{Last: 5}, [][]trace.Event{at(1, 10, 40)}, 2, 40},
		{Config{Events: 1}, [][]trace.Event{at(1, 50), at(2, 20), at(3, 60)}, 1, 10}, // time 0 does not go back
	} {
		w := newWindow(tc.cfg)
		for _, batch := range tc.batches {
			if n, err := w.WriteBatch(batch, nil); n != len(batch) || err != nil {
				t.Errorf("%d of %d written: %v", n, len(batch), err)
			}
		}
		if n, span := w.held(); n != tc.events || span != tc.span {
			t.Errorf("%+v of %v: %d events of %d ns, want %d of %d", tc.cfg, tc.batches, n, span, tc.events, tc.span)
		}
	}
}

// A batch that was forgotten is not kept by what the window shares with it.
func TestForgottenBatchesAreGarbage(t *testing.T) {
	w := newWindow(Config{Events: 1})
	for i := range int64(100) {
		_, _ = w.WriteBatch(at(uint64(i), i), nil)
	}
	for i, batch := range w.batches[:cap(w.batches)] {
		if (batch != nil) != (i == 0) {
			t.Errorf("batch %d of %d: %v", i, cap(w.batches), batch)
		}
	}
}

// What was forgotten begins the recording: rates of sites first, objects in the order in which they were allocated. Its time is 0, and Start
// the wall clock of then. The rest comes in order of time, though batches overlap.
func TestWhatARecordingIsOf(t *testing.T) {
	w := newWindow(Config{Events: 4})
	labels := []string{"", "a phase", trace.SiteRateLabel, "site"}
	rate := func(now int64, space pressure.Space, bytes int64) trace.Event {
		return trace.Event{Time: now, Kind: trace.Mark, Space: space, Bytes: bytes, Aux: 2}
	}
	object := func(now int64, id uint64, bytes int64) trace.Event {
		return trace.Event{Time: now, Kind: trace.Alloc, ID: id, Bytes: bytes, Aux: 3}
	}
	for _, batch := range [][]trace.Event{
		{rate(1, pressure.Host, 90), {Time: 2, Kind: trace.Mark, Aux: 1, Stream: 2, Bytes: 5}, {Time: 3, Kind: trace.Mark, Aux: 99}, {Time: 3, Kind: trace.Mark, Aux: 4}},
		{rate(3, pressure.Host, 80), rate(4, pressure.Pinned, 70), object(20, 30, 9), object(21, 20, 8), object(22, 15, 7), object(22, 10, 6), object(23, 5, 5)},
		{{Time: 24, Kind: trace.Free, ID: 20, Bytes: 8}, {Time: 25, Kind: trace.Drop, ID: 15, Bytes: 7}, {Time: 26, Kind: trace.Sync, Duration: 1}},
		{object(40, 50, 4), object(60, 51, 3)},
		{{Time: 50, Kind: trace.Sync, Duration: 20, Aux: 1}, object(70, 52, 2)},
	} {
		if _, err := w.WriteBatch(batch, labels); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	got := w.trace(start)
	want := []string{"mark 0 80 host", "mark 0 70 pinned", "alloc 0 30", "alloc 0 10", "alloc 0 5", "alloc 14 50", "sync 24", "alloc 34 51", "alloc 44 52"}
	var lines []string
	for _, e := range got.Events {
		switch e.Kind {
		case trace.Mark:
			lines = append(lines, fmt.Sprint("mark ", e.Time, " ", e.Bytes, " ", e.Space))
		case trace.Alloc:
			lines = append(lines, fmt.Sprint("alloc ", e.Time, " ", e.ID))
		default:
			lines = append(lines, fmt.Sprint(e.Kind, " ", e.Time))
		}
	}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("%q, want\n%q", lines, want)
	}
	if !got.Start.Equal(start.Add(26)) || fmt.Sprint(got.Labels) != fmt.Sprint(labels) {
		t.Errorf("since %v, labels %q", got.Start, got.Labels)
	}
	if again := w.trace(time.Time{}); !again.Start.IsZero() {
		t.Errorf("since %v", again.Start)
	}
	got.Events[0].Bytes, got.Labels[1] = -1, "" // it is the caller's
	if again := w.trace(start); again.Events[0].Bytes != 80 || again.Labels[1] != "a phase" {
		t.Error("the window shares its memory")
	}
}

// Of objects that are not known nothing is told, and of those that are there no second allocation.
func TestStrangers(t *testing.T) {
	kinds := map[string]trace.Kind{"alloc": trace.Alloc, "drop": trace.Drop, "free": trace.Free, "sync": trace.Sync}
	for story, want := range map[string]string{
		"alloc free":             "alloc free",
		"alloc drop":             "alloc drop",
		"free":                   "",
		"drop":                   "",
		"alloc free free":        "alloc free",
		"alloc drop free":        "alloc drop",
		"alloc alloc free":       "alloc free",
		"alloc free alloc":       "alloc free alloc",
		"alloc drop alloc free":  "alloc drop alloc free",
		"free alloc":             "alloc",
		"sync free sync alloc":   "sync sync alloc",
		"alloc free alloc alloc": "alloc free alloc",
	} {
		gone, got := strangers(), ""
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(story, -1) {
			if !gone(trace.Event{ID: 1, Kind: kinds[name]}) {
				got += " " + name
			}
		}
		if want != "" {
			want = " " + want
		}
		if got != want {
			t.Errorf("%s: left%s, want%s", story, got, want)
		}
	}
}
