package flight

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
)

// Whatever was recorded, a window is a recording that validates, with the objects live at its
// end that the whole recording has, in its last minutes event for event.
func TestWindowIsARecording(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		cfg := Config{Last: time.Duration(1 + r.Int64N(3000)), Events: 1 + r.IntN(400)}
		w := newWindow(cfg)
		live := map[uint64]int64{}
		var all []trace.Event
		labels := []string{""}
		now, id := int64(0), uint64(0)
		for range r.IntN(60) {
			var batch []trace.Event
			labels = append(labels, fmt.Sprint("place ", len(labels)))
			for range 1 + r.IntN(30) {
				now += r.Int64N(10)
				e := trace.Event{Time: now, Kind: trace.Sync, Duration: 1, Aux: uint32(len(labels) - 1)}
				switch k := r.IntN(3); {
				case k == 0:
					id++
					e = trace.Event{Time: now, Kind: trace.Alloc, ID: id, Bytes: r.Int64N(1000)}
					live[id] = e.Bytes
				case k == 1:
					for x, bytes := range live {
						e = trace.Event{Time: now, Kind: trace.Free, ID: x, Bytes: bytes, Aux: trace.FreeCycle}
						delete(live, x)
						break
					}
				}
				batch = append(batch, e)
			}
			all = append(all, batch...)
			if _, err := w.WriteBatch(batch, labels); err != nil {
				t.Fatal(err)
			}
			clear(batch) // a window keeps no slice
		}
		got := w.trace(time.Time{})
		if err := got.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		left := map[uint64]int64{}
		for _, e := range got.Events {
			switch e.Kind {
			case trace.Alloc:
				left[e.ID] = e.Bytes
			case trace.Free:
				delete(left, e.ID)
			}
		}
		if fmt.Sprint(left) != fmt.Sprint(live) {
			t.Fatalf("seed %d: live %v, want %v", seed, left, live)
		}
		n, span := w.held()
		for i := range n { // the end is as it was
			a, b := got.Events[len(got.Events)-1-i], all[len(all)-1-i]
			if shift := b.Time - a.Time; a.ID != b.ID || a.Kind != b.Kind || got.Label(a) != (&trace.Trace{Labels: labels}).Label(b) || shift != all[len(all)-1].Time-int64(span) {
				t.Fatalf("seed %d: event %d from the end is %+v, want %+v; %v", seed, i, a, b, span)
			}
		}
		if n > cfg.Events+30 || n < len(all) && int64(span) > int64(cfg.Last)+300 {
			t.Fatalf("seed %d: %d events of %v are kept, want %d of %v", seed, n, span, cfg.Events, cfg.Last)
		}
	}
}

// Where allocations were lost, the rest is still a recording.
func TestWindowWithoutSomeAllocations(t *testing.T) {
	w := newWindow(Config{})
	free := func(at int64, id uint64) trace.Event {
		return trace.Event{Time: at, Kind: trace.Free, ID: id, Bytes: 5}
	}
	alloc := func(at int64, id uint64) trace.Event {
		return trace.Event{Time: at, Kind: trace.Alloc, ID: id, Bytes: 5}
	}
	if _, err := w.WriteBatch([]trace.Event{free(1, 1), alloc(2, 2), free(3, 2), alloc(4, 3), alloc(5, 3), free(6, 4)}, nil); err != nil {
		t.Fatal(err)
	}
	got := w.trace(time.Time{})
	if err := got.Validate(); err != nil || len(got.Events) != 3 {
		t.Errorf("%v: %v", got.Events, err)
	}
}

// Through a recorder: the rate at which sites are sampled is not forgotten.
func TestWindowKeepsTheSiteRate(t *testing.T) {
	w := newWindow(Config{Events: 10})
	r := trace.NewRecorder(w, trace.RecorderConfig{})
	r.Record(trace.Event{Kind: trace.Mark, Bytes: 4096, Aux: r.Label(trace.SiteRateLabel)})
	for i := range 100 {
		r.Record(trace.Event{Time: int64(i), Kind: trace.Alloc, ID: uint64(i + 1), Bytes: 1})
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := w.trace(time.Time{})
	if e := got.Events[0]; len(got.Events) != 101 || e.Kind != trace.Mark || got.Label(e) != trace.SiteRateLabel || e.Bytes != 4096 {
		t.Errorf("%d events, the first is %+v", len(got.Events), e)
	}
}

// BenchmarkWindow is what an event costs that is kept, and later forgotten, on the
// recorder's goroutine.
func BenchmarkWindow(b *testing.B) {
	const n = 1000
	w := newWindow(Config{Events: 100 * n})
	batch := make([]trace.Event, n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for k := range batch {
			at, id := int64(i*n+k), uint64(i*n+k)/2
			batch[k] = trace.Event{Time: at, Kind: trace.Alloc, ID: id, Bytes: 1}
			if k%2 == 1 {
				batch[k].Kind = trace.Free
			}
		}
		if _, err := w.WriteBatch(batch, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
}
