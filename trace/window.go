package trace

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A WindowConfig sizes a [Window]. The zero value means the defaults.
type WindowConfig struct {
	Last   time.Duration // how much of the recording to keep; 0 = 5 minutes
	Events int           // and how many events at most; 0 = 262144, which take 12.6 MB
}

// A Window is a [BatchWriter] that keeps the end of a recording in memory: a
// program that always records into one can show its last minutes at any time.
//
//	window := trace.NewWindow(trace.WindowConfig{})
//	recorder := trace.NewRecorder(window, trace.RecorderConfig{})
//
// Whole batches are forgotten, the oldest first. Of those a window keeps the objects that
// are still there, about 100 bytes for each, so that what it returns is a recording
// of its own. All methods are safe for concurrent use.
type Window struct {
	cfg WindowConfig

	mu      sync.Mutex
	batches [][]Event // oldest first
	events  int       // in all of them
	labels  []string
	from    int64                    // time of the last event that was forgotten
	live    map[uint64]Event         // the Allocs of objects that were there then
	rates   map[pressure.Space]Event // how sites were sampled then: see SiteRateLabel
}

// NewWindow returns an empty window.
func NewWindow(c WindowConfig) *Window {
	return &Window{
		cfg:  WindowConfig{Last: cmp.Or(c.Last, 5*time.Minute), Events: cmp.Or(c.Events, 1<<18)},
		live: make(map[uint64]Event), rates: make(map[pressure.Space]Event),
	}
}

// WriteBatch implements [BatchWriter] for one recorder, whose labels keep their numbers.
func (w *Window) WriteBatch(events []Event, labels []string) error {
	if len(events) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.labels = append(w.labels, labels[min(len(w.labels), len(labels)):]...)
	w.batches = append(w.batches, slices.Clone(events))
	w.events += len(events)
	oldest := events[len(events)-1].Time - int64(w.cfg.Last)
	for len(w.batches) > 1 && (w.events > w.cfg.Events || lastOf(w.batches[0]) < oldest) {
		w.forget(w.batches[0])
		w.batches[0] = nil
		w.batches = w.batches[1:]
	}
	return nil
}

func lastOf(batch []Event) int64 { return batch[len(batch)-1].Time }

// forget keeps of a batch what is still there after it.
func (w *Window) forget(batch []Event) {
	w.events -= len(batch)
	w.from = max(w.from, lastOf(batch))
	for _, e := range batch {
		switch e.Kind {
		case Alloc:
			w.live[e.ID] = e
		case Drop, Free:
			delete(w.live, e.ID)
		case Mark:
			if int(e.Aux) < len(w.labels) && w.labels[e.Aux] == SiteRateLabel {
				w.rates[e.Space] = e
			}
		}
	}
}

// Close implements [BatchWriter]. What the window keeps can still be read.
func (w *Window) Close() error { return nil }

// Trace returns what the window keeps as a recording of its own, whose memory it does not share.
// Its time 0 is that of the last event that was forgotten; what was allocated
// before is allocated then, in the order of its allocation. Events of objects whose
// allocation was lost, or not recorded, are left out, so that it validates. Start is the wall clock of the
// recorder's time 0; it may be zero.
func (w *Window) Trace(start time.Time) *Trace {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := slices.AppendSeq(slices.Collect(maps.Values(w.rates)), maps.Values(w.live))
	slices.SortFunc(before, func(a, b Event) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID)) })
	t := &Trace{Labels: slices.Clone(w.labels), Events: make([]Event, 0, len(before)+w.events)}
	for _, batch := range append([][]Event{before}, w.batches...) {
		for _, e := range batch {
			e.Time = max(0, e.Time-w.from)
			t.Events = append(t.Events, e)
		}
	}
	Sort(t.Events)
	t.Events = slices.DeleteFunc(t.Events, strangers())
	if !start.IsZero() {
		t.Start = start.Add(time.Duration(w.from))
	}
	return t
}

// strangers reports of each event in turn whether it is of an object that is not there, or
// allocates one that is.
func strangers() func(Event) bool {
	there := make(map[uint64]bool)
	return func(e Event) bool {
		switch e.Kind {
		case Alloc:
			was := there[e.ID]
			there[e.ID] = true
			return was
		case Drop, Free:
			was := there[e.ID]
			delete(there, e.ID)
			return !was
		}
		return false
	}
}

// Held says how many events a window keeps, of how long.
func (w *Window) Held() (events int, span time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.batches) > 0 {
		span = time.Duration(lastOf(w.batches[len(w.batches)-1]) - w.from)
	}
	return w.events, span
}
