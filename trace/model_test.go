package trace_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/trace"
)

// TestRecorderAgainstAModel runs random schedules against what they must come
// to: every event that was taken is written once, as it was, with its label and
// its time, in batches that are in order; what found no room is
// counted to the event, in the recorder and in the trace; and after an error or
// Close nothing is taken.
func TestRecorderAgainstAModel(t *testing.T) {
	was := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // it says that recordings have failed
	defer slog.SetDefault(was)
	check(t, 2000, func(rt *random) {
		w := &scripted{entered: make(chan struct{}, 1)}
		room := 64 // events, the least: as many for each shard
		for room/64 < runtime.GOMAXPROCS(0) {
			room *= 2
		}
		m := &model{w: w, room: room, on: true, taken: map[uint64]taken{}}
		m.r = trace.NewRecorder(w, trace.RecorderConfig{Buffer: room, Interval: time.Hour})
		defer m.r.Close()
		for range rt.IntN(60) {
			pick(rt, m.record, m.flush, m.stuck, m.fail, m.close)(rt)
			m.check(rt)
		}
		m.end(rt)
	})
}

// scripted is a BatchWriter that keeps everything, and is stuck or fails when it
// is told to.
type scripted struct {
	mu      sync.Mutex // guards what is written
	t       trace.Trace
	starts  []int // of batches in t.Events
	err     error
	part    int                 // events of the batch that fails that are written all the same
	partly  func([]trace.Event) // told of them
	hold    chan struct{}       // if set, a batch waits for it
	entered chan struct{}       // told of that
	closed  int
	late    bool // written to after Close or an error
}

func (w *scripted) WriteBatch(events []trace.Event, labels []string) (int, error) {
	err := w.err
	if hold := w.hold; hold != nil {
		w.entered <- struct{}{}
		<-hold
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = w.late || w.closed > 0
	if err != nil {
		w.late = w.late || errors.Is(err, errLate)
		w.err = errLate
		events = events[:min(w.part, len(events))]
		w.partly(events)
	}
	w.starts = append(w.starts, len(w.t.Events))
	w.t.Events = append(w.t.Events, events...)
	w.t.Labels = slices.Clone(labels)
	return len(events), err
}

func (w *scripted) Close() error { w.closed++; return nil }

func (w *scripted) events() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.t.Events)
}

var errFull, errLate = errors.New("disk full"), errors.New("written to after an error")

type model struct {
	r      *trace.Recorder
	w      *scripted
	room   int // events that the buffers hold
	failed bool
	on     bool

	ids   uint64           // events so far
	taken map[uint64]taken // by ID, and not yet seen to be written
	seen  int              // events of w that were compared
	lost  int64
	noted int64 // lost, by the trace
	after int64 // lost since a batch has failed, with that
}

// taken is an event that the recorder must write.
type taken struct {
	trace.Event
	label string
}

// record takes some events, fewer than the buffers hold together.
func (m *model) record(t *random) {
	m.take(t, between(t, 1, m.room/4))
}

// take records n events. As long as the writer runs they all find room, since it
// is waited for when the buffers may be full.
func (m *model) take(t *random, n int) {
	if len(m.taken)+n > m.room {
		m.flush(t)
	}
	for range n {
		m.one(t, trace.Kind(m.ids%7), time.Duration(m.ids%3)*time.Microsecond)
	}
}

func (m *model) one(t *random, k trace.Kind, d time.Duration) {
	m.ids++
	x := taken{Event: trace.Event{Kind: k, ID: m.ids, Bytes: 7, Duration: d, Stream: 3}}
	if x.Kind.Labelled() {
		x.label = fmt.Sprint("label ", m.ids%5)
		x.Aux = m.r.Label(x.label)
		if again := m.r.Label(x.label); again != x.Aux {
			t.Fatalf("the number of %q was %d and is %d", x.label, x.Aux, again)
		}
	}
	x.Time = max(0, int64(m.r.Now()-d))
	m.r.Record(x.Event)
	switch {
	case m.on:
		m.taken[x.ID] = x
	case m.failed:
		m.after++
	}
}

func (m *model) flush(t *random) {
	if err := m.r.Flush(); errors.Is(err, errFull) != m.failed {
		t.Fatalf("Flush: %v, failed before: %v", err, m.failed)
	}
	m.compare(t)
}

// whileStuck calls do while the writer is held in a batch of one event, and
// returns when it has done with it and with what was taken meanwhile.
func (m *model) whileStuck(t *random, do func()) {
	m.flush(t)
	hold := make(chan struct{})
	m.w.hold = hold
	goOn := sync.OnceFunc(func() { m.w.hold = nil; close(hold) })
	defer goOn()
	m.one(t, trace.Mark, 0)
	flushed := make(chan struct{})
	go func() { m.r.Flush(); close(flushed) }()
	select {
	case <-m.w.entered:
	case <-flushed:
		t.Fatal("an event was not written")
	}
	do()
	select {
	case <-flushed:
		t.Fatal("Flush has not waited")
	default:
	}
	goOn()
	<-flushed
	m.flush(t)
}

// stuck has the writer fall behind. What then finds room is what the buffers
// hold, to the event.
func (m *model) stuck(t *random) {
	if !m.on {
		return
	}
	n := between(t, 0, 2*m.room)
	m.whileStuck(t, func() {
		for i := range n {
			m.one(t, trace.Alloc, 0)
			if i >= m.room {
				delete(m.taken, m.ids)
				m.lost++
			}
		}
	})
}

// fail has the next batch fail. What is not written of it is lost, and so is what found no room meanwhile, of which the trace may say so.
func (m *model) fail(t *random) {
	if !m.on || between(t, 0, 3) > 0 {
		return
	}
	n := between(t, 1, 2*m.room)
	m.whileStuck(t, func() {
		stuck := m.taken[m.ids]
		for range n {
			m.one(t, trace.Alloc, 0)
		}
		m.w.err = errFull
		m.failed, m.on = true, false
		m.after = int64(n)
		all := maps.Clone(m.taken)
		clear(m.taken)
		m.taken[stuck.ID] = stuck
		m.w.part = between(t, 0, m.room+1)
		m.w.partly = func(written []trace.Event) {
			for _, e := range written {
				if e.Kind == trace.Mark {
					m.lost += e.Bytes
					m.after -= e.Bytes
				} else {
					m.taken[e.ID] = all[e.ID]
					m.after--
				}
			}
		}
	})
}

func (m *model) close(t *random) {
	if between(t, 0, 3) > 0 {
		return
	}
	if err := m.r.Close(); errors.Is(err, errFull) != m.failed {
		t.Fatalf("Close: %v, failed before: %v", err, m.failed)
	}
	m.on = false
	m.compare(t)
}

func (m *model) check(t *random) {
	if (m.r.Err() != nil) != m.failed {
		t.Fatalf("error %v, failed before: %v", m.r.Err(), m.failed)
	}
}

// end closes the recorder, if that was not done.
func (m *model) end(t *random) {
	if m.r.Close(); m.w.closed != 1 {
		t.Fatalf("the writer was closed %d times", m.w.closed)
	}
	m.on = false
	m.check(t)
	m.compare(t)
}

// compare holds what was written to what was taken. The writer is at rest.
func (m *model) compare(t *random) {
	for ; m.seen < len(m.w.t.Events); m.seen++ {
		e := m.w.t.Events[m.seen]
		if !slices.Contains(m.w.starts, m.seen) && e.Time < m.w.t.Events[m.seen-1].Time {
			t.Fatalf("event %d is before its neighbour", m.seen)
		}
		if e.Kind == trace.Mark && m.w.t.Label(e) == trace.LostLabel {
			m.noted += e.Bytes
		} else {
			m.written(t, e)
		}
	}
	if len(m.taken) > 0 || m.noted != m.lost || m.r.Lost() != m.lost+m.after {
		t.Fatalf("%d events were not written; %d lost in the trace, %d by the recorder, want %d", len(m.taken), m.noted, m.r.Lost(), m.lost)
	}
	if m.w.late {
		t.Fatal("written to after Close or an error")
	}
}

// written holds one event to the call that made it.
func (m *model) written(t *random, e trace.Event) {
	x, ok := m.taken[e.ID]
	if !ok {
		t.Fatalf("%+v was not taken, or was written before", e)
	}
	delete(m.taken, e.ID)
	if x.Kind.Labelled() && m.w.t.Label(e) != x.label {
		t.Fatalf("label %q, want %q", m.w.t.Label(e), x.label)
	}
	if e != x.Event {
		t.Fatalf("written %+v, taken %+v", e, x.Event)
	}
}
