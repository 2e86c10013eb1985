package trace_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
)

func waitFor(t *testing.T, d time.Duration, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("condition not met within %v", d)
		}
	}
}

// record sends an event that has just happened or ended, as senders do.
func record(to trace.Sink, e trace.Event) {
	e.Time = int64(to.Now() - e.Duration)
	to.Record(e)
}

func TestRecorderNil(t *testing.T) {
	var r *trace.Recorder
	record(r, trace.Event{})
	if r.Label("x") != 0 || r.Lost() != 0 || r.Err() != nil || r.Flush() != nil || r.Close() != nil {
		t.Error("a nil recorder is not off")
	}
	if r.Now() != 0 {
		t.Error("a nil recorder has a clock")
	}
}

// TestRecorderConcurrent: nothing is lost or torn, batches are in order, and
// each batch holds no free whose allocation comes in a later one. The buffers
// hold all events twice over, so that a writer that does not run loses none.
func TestRecorderConcurrent(t *testing.T) {
	const goroutines, each = 8, 3000
	k := new(scripted)
	r := trace.NewRecorder(k, trace.RecorderConfig{Buffer: 4 * goroutines * each, Interval: time.Millisecond})
	var ids atomic.Uint64
	var wg sync.WaitGroup
	handoff := make(chan uint64, 64) // objects are freed by other goroutines
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				id := ids.Add(1)
				record(r, trace.Event{Kind: trace.Alloc, ID: id, Bytes: int64(id), Stream: uint32(g)})
				select {
				case handoff <- id:
				case other := <-handoff:
					record(r, trace.Event{Kind: trace.Free, ID: other, Bytes: int64(other)})
					record(r, trace.Event{Kind: trace.Free, ID: id, Bytes: int64(id)})
				}
				if i%500 == 0 {
					record(r, trace.Event{Kind: trace.Sync, Aux: r.Label(fmt.Sprint("site ", g))})
				}
			}
		}()
	}
	wg.Wait()
	if err := r.Close(); err != nil || r.Lost() > 0 {
		t.Fatalf("error %v, lost %d", err, r.Lost())
	}
	start, allocated := 0, map[uint64]bool{}
	for i, end := range append(k.starts[1:], len(k.t.Events)) {
		batch := k.t.Events[start:end]
		for _, e := range batch { // a flush takes what all goroutines have recorded at one moment
			allocated[e.ID] = allocated[e.ID] || e.Kind == trace.Alloc
		}
		for _, e := range batch {
			if e.Kind == trace.Free && !allocated[e.ID] {
				t.Fatalf("batch %d frees what a later one allocates", i)
			}
		}
		if !slices.IsSortedFunc(batch, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) }) {
			t.Errorf("batch %d is not in order", i)
		}
		start = end
	}
	// As they stand, and as a reader sorts them.
	trace.Sort(k.t.Events)
	if err := k.t.Validate(); err != nil {
		t.Fatal(err)
	}
	n := make(map[trace.Kind]int)
	for _, e := range k.t.Events {
		n[e.Kind]++
	}
	if left := len(handoff); n[trace.Alloc] != goroutines*each || n[trace.Free]+left != n[trace.Alloc] || n[trace.Sync] != goroutines*6 {
		t.Errorf("%d allocs, %d frees, %d objects left, %d syncs", n[trace.Alloc], n[trace.Free], left, n[trace.Sync])
	}
}

// TestRecorderLabels: the number of texts is bounded, as memory is.
func TestRecorderLabels(t *testing.T) {
	k := new(scripted)
	r := trace.NewRecorder(k, trace.RecorderConfig{})
	first := r.Label("0")
	for i := range 70000 {
		r.Label(fmt.Sprint(i))
	}
	if again := r.Label("0"); again != first || first == r.Label("1") || r.Label("one more") != r.Label("and another") {
		t.Errorf("labels %d, %d, %d", r.Label("0"), r.Label("one more"), r.Label("and another"))
	}
	record(r, trace.Event{Kind: trace.Mark})
	if err := r.Close(); err != nil || len(k.t.Labels) > 1<<16+1 {
		t.Errorf("%d labels, %v", len(k.t.Labels), err)
	}
}

func TestRecordAllocates(t *testing.T) {
	r := trace.NewRecorder(discard{}, trace.RecorderConfig{})
	defer r.Close()
	if n := testing.AllocsPerRun(10000, func() { record(r, trace.Event{Kind: trace.Alloc}) }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

type discard struct{}

func (discard) WriteBatch(e []trace.Event, _ []string) (int, error) { return len(e), nil }
func (discard) Close() error                                        { return nil }

// TestWhatIsRecordedInTime: few events wait for no longer than the interval, and a buffer that is half full for nothing.
func TestWhatIsRecordedInTime(t *testing.T) {
	for events, c := range map[int]trace.RecorderConfig{1: {Interval: 5 * time.Millisecond}, 600: {Buffer: 1000, Interval: time.Hour}} {
		k := new(scripted)
		r := trace.NewRecorder(k, c)
		for range events {
			record(r, trace.Event{Kind: trace.Mark})
		}
		waitFor(t, 30*time.Second, func() bool { return k.events() > 0 })
		r.Close()
	}
}

// TestOrderOfABatch: by time, which is at least 0, and at one time by kind: an object is allocated before it is freed.
func TestOrderOfABatch(t *testing.T) {
	k := new(scripted)
	r := trace.NewRecorder(k, trace.RecorderConfig{Interval: time.Hour})
	for _, at := range []int64{5, 3, int64(time.Hour), -1} {
		for _, kind := range []trace.Kind{trace.Sync, trace.Free, trace.Alloc} {
			r.Record(trace.Event{Kind: kind, Time: at})
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var want []trace.Event
	for _, at := range []int64{0, 3, 5, int64(time.Hour)} {
		for _, kind := range []trace.Kind{trace.Alloc, trace.Free, trace.Sync} {
			want = append(want, trace.Event{Kind: kind, Time: at})
		}
	}
	if !slices.Equal(k.t.Events, want) {
		t.Errorf("%v, want %v", k.t.Events, want)
	}
}
