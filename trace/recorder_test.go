package trace_test

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
)

// A keeper is a BatchWriter that keeps everything.
type keeper struct {
	mu      sync.Mutex
	t       trace.Trace
	batches []int
	closed  int
	err     error         // of the next call
	hold    chan struct{} // if set, a batch waits for it
}

func (k *keeper) WriteBatch(events []trace.Event, labels []string) (int, error) {
	if k.hold != nil {
		<-k.hold
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return 0, k.err
	}
	k.batches = append(k.batches, len(events))
	k.t.Events = append(k.t.Events, events...)
	k.t.Labels = slices.Clone(labels)
	return len(events), nil
}

func (k *keeper) Close() error {
	k.closed++
	return k.err
}

func (k *keeper) events() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.t.Events)
}

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

func TestRecorder(t *testing.T) {
	k := new(keeper)
	r := trace.NewRecorder(k, trace.RecorderConfig{Interval: time.Hour})
	label := r.Label("loss.item()")
	record(r, trace.Event{Kind: trace.Alloc, ID: 1, Bytes: 10})
	time.Sleep(2 * time.Millisecond)
	record(r, trace.Event{Kind: trace.Sync, Duration: time.Millisecond, Aux: label})
	record(r, trace.Event{Kind: trace.Sync, Duration: time.Hour}) // longer than the recording
	record(r, trace.Event{Kind: trace.Free, ID: 1, Bytes: 10})
	if err := r.Flush(); err != nil || k.events() != 4 {
		t.Fatalf("flushed %d events, %v", k.events(), err)
	}
	record(r, trace.Event{Kind: trace.Mark, Aux: r.Label("the last one")})
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	record(r, trace.Event{Kind: trace.Alloc, ID: 3})
	if err := r.Flush(); err != nil || r.Lost() != 0 || k.closed != 1 {
		t.Errorf("after Close: error %v, lost %d, closed %d times", err, r.Lost(), k.closed)
	}
	trace.Sort(k.t.Events)
	if err := k.t.Validate(); err != nil {
		t.Fatal(err)
	}
	kinds, labels := []trace.Kind{}, []string{}
	for _, e := range k.t.Events {
		kinds, labels = append(kinds, e.Kind), append(labels, k.t.Label(e))
	}
	wantKinds := []trace.Kind{trace.Sync, trace.Alloc, trace.Sync, trace.Free, trace.Mark}
	if !slices.Equal(kinds, wantKinds) || !slices.Equal(labels, []string{"", "", "loss.item()", "", "the last one"}) {
		t.Errorf("got %v with labels %q", kinds, labels)
	}
	if e := k.t.Events; e[0].Time != 0 || e[2].Duration != time.Millisecond || e[3].Time-e[2].Time < int64(time.Millisecond) {
		t.Errorf("times %d, %d, %d", e[0].Time, e[2].Time, e[3].Time)
	}
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

// TestRecorderHonoursTimes: what is written is what was sent, whenever that was.
func TestRecorderHonoursTimes(t *testing.T) {
	k := new(keeper)
	r := trace.NewRecorder(k, trace.RecorderConfig{Interval: time.Hour})
	for _, at := range []int64{5, 3, int64(time.Hour), -1} {
		r.Record(trace.Event{Kind: trace.Mark, Time: at})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var times []int64
	for _, e := range k.t.Events {
		times = append(times, e.Time)
	}
	if !slices.Equal(times, []int64{0, 3, 5, int64(time.Hour)}) {
		t.Errorf("written times %d", times)
	}
}

// TestRecorderInterval: no event waits longer than the interval, however few
// there are.
func TestRecorderInterval(t *testing.T) {
	k := new(keeper)
	r := trace.NewRecorder(k, trace.RecorderConfig{Interval: 5 * time.Millisecond})
	defer r.Close()
	record(r, trace.Event{Kind: trace.Sync})
	waitFor(t, 30*time.Second, func() bool { return k.events() == 1 })
}

// TestRecorderHalf: a buffer that fills is written ahead of time.
func TestRecorderHalf(t *testing.T) {
	k := new(keeper)
	r := trace.NewRecorder(k, trace.RecorderConfig{Buffer: 1000, Interval: time.Hour})
	defer r.Close()
	for range 600 {
		record(r, trace.Event{Kind: trace.Mark})
	}
	waitFor(t, 30*time.Second, func() bool { return k.events() > 0 })
}

// TestRecorderConcurrent: nothing is lost or torn, batches are in order, and
// each batch holds no free whose allocation comes in a later one. The buffers
// hold all events twice over, so that a writer that does not run loses none.
func TestRecorderConcurrent(t *testing.T) {
	const goroutines, each = 8, 3000
	k := new(keeper)
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
	start := 0
	for i, n := range k.batches {
		batch := k.t.Events[start : start+n]
		if !slices.IsSortedFunc(batch, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) }) {
			t.Errorf("batch %d is not in order", i)
		}
		start += n
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

// TestRecorderLoses: a writer that is stuck costs events, which are counted, and
// never time. It has one batch, and the buffers hold another.
func TestRecorderLoses(t *testing.T) {
	k := &keeper{hold: make(chan struct{})}
	const room = 64 * 64 // enough for any number of processors
	r := trace.NewRecorder(k, trace.RecorderConfig{Buffer: room, Interval: time.Hour})
	const n = 10 * room
	for range n {
		record(r, trace.Event{Kind: trace.Alloc})
	}
	close(k.hold)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var kept, lost int64
	for _, e := range k.t.Events {
		if e.Kind == trace.Mark && k.t.Label(e) == trace.LostLabel {
			lost += e.Bytes
		} else {
			kept++
		}
	}
	if lost == 0 || lost != r.Lost() || kept+lost != n || kept > 2*room {
		t.Errorf("kept %d, lost %d by the trace and %d by the recorder, of %d", kept, lost, r.Lost(), n)
	}
}

func TestRecorderFails(t *testing.T) {
	full := errors.New("disk full")
	k := new(keeper)
	r := trace.NewRecorder(k, trace.RecorderConfig{Interval: time.Hour})
	record(r, trace.Event{Kind: trace.Mark})
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	k.err = full
	k.mu.Unlock()
	record(r, trace.Event{Kind: trace.Mark})
	if err := r.Flush(); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	k.mu.Lock()
	k.err = errors.New("a later error")
	k.mu.Unlock()
	record(r, trace.Event{Kind: trace.Mark})
	if !errors.Is(r.Err(), full) || !errors.Is(r.Close(), full) || k.closed != 1 || k.events() != 1 {
		t.Errorf("error %v, closed %d times, %d events", r.Err(), k.closed, k.events())
	}
}

// partly is a BatchWriter that writes so many events, and no more.
type partly struct {
	keeper
	room int
}

func (p *partly) WriteBatch(events []trace.Event, labels []string) (int, error) {
	n := min(p.room, len(events))
	p.keeper.WriteBatch(events[:n], labels)
	if p.room -= n; n < len(events) {
		return n, errors.New("disk full")
	}
	return len(events), nil
}

// TestRecorderCountsWhatWasWritten: each event is in the file or lost, also those of
// the batch that did not fit, and of the time after it. What was lost before, for lack of
// a buffer, counts once, whether its mark was written or not.
func TestRecorderCountsWhatWasWritten(t *testing.T) {
	const shard = 64 // events that there is room for, for each processor
	for _, room := range []int{0, 3, shard - 4, 100, 5000} {
		p := &partly{room: room}
		p.hold = make(chan struct{})
		r := trace.NewRecorder(p, trace.RecorderConfig{Buffer: 1, Interval: time.Hour})
		var n int64
		for range 200 * runtime.GOMAXPROCS(0) {
			record(r, trace.Event{Kind: trace.Alloc})
			n++
		}
		close(p.hold)
		r.Flush()
		for range 10 {
			record(r, trace.Event{Kind: trace.Alloc})
			n++
		}
		r.Flush()
		r.Close()
		var kept int64
		for _, e := range p.t.Events {
			if e.Kind == trace.Alloc {
				kept++
			}
		}
		if kept+r.Lost() != n || room < shard && r.Err() == nil {
			t.Errorf("room for %d: of %d events %d are kept and %d lost; %v", room, n, kept, r.Lost(), r.Err())
		}
	}
}

// TestRecorderLabels: the number of texts is bounded, as memory is.
func TestRecorderLabels(t *testing.T) {
	k := new(keeper)
	r := trace.NewRecorder(k, trace.RecorderConfig{})
	for i := range 70000 {
		r.Label(fmt.Sprint(i))
	}
	if r.Label("0") != 1 || r.Label("one more") != r.Label("and another") {
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

// BenchmarkRecord is what the program pays for an event. The writer is waited for
// off the clock, so that no event is lost: losing one is cheaper.
func BenchmarkRecord(b *testing.B) {
	off := trace.NewRecorder(discard{}, trace.RecorderConfig{})
	off.Close()
	on := trace.NewRecorder(discard{}, trace.RecorderConfig{})
	defer on.Close()
	for _, c := range []struct {
		name string
		r    *trace.Recorder
	}{{"nil", nil}, {"off", off}, {"on", on}} {
		b.Run("recorder="+c.name, func(b *testing.B) {
			for i := 1; b.Loop(); i++ {
				record(c.r, trace.Event{Kind: trace.Alloc, ID: 1, Bytes: 1 << 20})
				if i%(1<<14) == 0 {
					b.StopTimer()
					c.r.Flush()
					b.StartTimer()
				}
			}
			if c.r.Lost() > 0 {
				b.Errorf("lost %d events", c.r.Lost())
			}
		})
	}
	b.Run("recorder=on/goroutines="+fmt.Sprint(runtime.GOMAXPROCS(0)), func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				record(on, trace.Event{Kind: trace.Alloc, ID: 1, Bytes: 1 << 20})
			}
		})
	})
	b.Run("clock", func(b *testing.B) { // what of it the clock costs
		start := time.Now()
		for b.Loop() {
			_ = time.Since(start)
		}
	})
}

// Events of one time are written in the order of their kinds: an object is
// allocated before it is freed.
func TestRecorderOrderAtOneTime(t *testing.T) {
	k := new(keeper)
	r := trace.NewRecorder(k, trace.RecorderConfig{})
	for _, kind := range []trace.Kind{trace.Sync, trace.Free, trace.Drop, trace.Alloc} {
		r.Record(trace.Event{Time: 5, Kind: kind, ID: 1, Bytes: 8})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var got []trace.Kind
	for _, e := range k.t.Events {
		got = append(got, e.Kind)
	}
	if want := []trace.Kind{trace.Alloc, trace.Drop, trace.Free, trace.Sync}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
