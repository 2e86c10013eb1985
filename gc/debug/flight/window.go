package flight

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Config says how much a [Recorder] keeps. The zero value means the defaults.
type Config struct {
	Last   time.Duration // how much of the recording to keep; 0 = 5 minutes
	Events int           // and how many events at most; 0 = 262144, which take 12.6 MB
}

// A window is a [trace.BatchWriter] that keeps the end of a recording in memory. It forgets whole
// batches, the oldest first. It keeps the objects of forgotten batches that are still live, so that
// the rest is a recording of its own. Each takes about 100 bytes.
type window struct {
	cfg Config

	mu      sync.Mutex
	batches [][]trace.Event // oldest first
	events  int             // in all of them
	labels  []string
	from    int64                          // time of the last event that was forgotten
	live    map[uint64]trace.Event         // the Allocs of objects that were live then
	rates   map[pressure.Space]trace.Event // how sites were sampled then: see SiteRateLabel
}

func newWindow(c Config) *window {
	return &window{
		cfg:  Config{Last: cmp.Or(c.Last, 5*time.Minute), Events: cmp.Or(c.Events, 1<<18)},
		live: make(map[uint64]trace.Event), rates: make(map[pressure.Space]trace.Event),
	}
}

// WriteBatch implements [trace.BatchWriter] for one recorder, whose labels keep their numbers.
func (w *window) WriteBatch(events []trace.Event, labels []string) (int, error) {
	if len(events) == 0 {
		return len(events), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.labels = append(w.labels, labels[min(len(w.labels), len(labels)):]...)
	w.batches = append(w.batches, slices.Clone(events))
	w.events += len(events)
	oldest := events[len(events)-1].Time - int64(w.cfg.Last)
	for len(w.batches) > 1 && (w.events > w.cfg.Events || lastOf(w.batches[0]) < oldest) {
		w.forget(w.batches[0])
		w.batches = slices.Delete(w.batches, 0, 1)
	}
	return len(events), nil
}

func lastOf(batch []trace.Event) int64 { return batch[len(batch)-1].Time }

// forget removes a batch, except the objects that are live after it.
func (w *window) forget(batch []trace.Event) {
	w.events -= len(batch)
	w.from = max(w.from, lastOf(batch))
	for _, e := range batch {
		switch e.Kind {
		case trace.Alloc:
			if _, again := w.live[e.ID]; !again {
				w.live[e.ID] = e
			}
		case trace.Drop, trace.Free:
			delete(w.live, e.ID)
		case trace.Mark:
			if int(e.Aux) < len(w.labels) && w.labels[e.Aux] == trace.SiteRateLabel {
				w.rates[e.Space] = e
			}
		}
	}
}

// Close implements [trace.BatchWriter]. The window can still be read.
func (w *window) Close() error { return nil }

// trace returns a copy of the window as a recording of its own. Its time 0 is the time of the last
// forgotten event. Older objects are allocated then, in the order of their allocation. Events of
// objects whose allocation was lost are left out, so that the recording validates. Start is the wall
// clock of the recorder's time 0, and may be zero.
func (w *window) trace(start time.Time) *trace.Trace {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := slices.AppendSeq(slices.Collect(maps.Values(w.rates)), maps.Values(w.live))
	slices.SortFunc(before, func(a, b trace.Event) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID)) })
	t := &trace.Trace{Labels: slices.Clone(w.labels), Events: make([]trace.Event, 0, len(before)+w.events)}
	for _, batch := range append([][]trace.Event{before}, w.batches...) {
		for _, e := range batch {
			e.Time = max(0, e.Time-w.from)
			t.Events = append(t.Events, e)
		}
	}
	trace.Sort(t.Events)
	t.Events = slices.DeleteFunc(t.Events, unmatched())
	if !start.IsZero() {
		t.Start = start.Add(time.Duration(w.from))
	}
	return t
}

// unmatched returns a function that takes the events in turn. It reports whether an event is about an
// object that is not live, or allocates an object with an identity that was used before.
func unmatched() func(trace.Event) bool {
	there := make(map[uint64]bool) // false once it is gone
	return func(e trace.Event) bool {
		now, seen := there[e.ID]
		switch e.Kind {
		case trace.Alloc:
			if !seen {
				there[e.ID] = true
			}
			return seen
		case trace.Drop, trace.Free:
			if now {
				there[e.ID] = false
			}
			return !now
		}
		return false
	}
}

// held returns the number of events in the window and the time that they cover.
func (w *window) held() (events int, span time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.batches) > 0 {
		span = time.Duration(lastOf(w.batches[len(w.batches)-1]) - w.from)
	}
	return w.events, span
}
