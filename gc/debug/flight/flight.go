// Package flight keeps the last minutes of a running program, as the flight recorder of an aeroplane
// does. They can be downloaded as a recording.
//
//	last, err := flight.New(flight.Config{})
//	collector, err := gc.New(gc.Config{Recorder: last})
//	pool, err := pool.New(pool.Config{Collector: collector, Trace: last})
//	mux.Handle("/debug/eagergc/", debug.Handler(collector, pool, last))
//
// The page then has a button to download the recording. Recording costs an allocation some tens of
// nanoseconds ([trace.Recorder]). Its memory is bounded ([Config]).
package flight

import (
	"fmt"
	"io"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Recorder records into a window of the last minutes. It is a [trace.Sink] and safe for concurrent
// use. Make one with [New].
type Recorder struct {
	*trace.Recorder
	window *window
	start  time.Time
}

// New returns a recorder that is on and keeps as much as c says. Close it when the program ends. The
// kept events can still be read then. New fails if c has a negative value.
func New(c Config) (*Recorder, error) {
	if c.Last < 0 || c.Events < 0 {
		return nil, fmt.Errorf("flight: keep %d events of the last %v: want 0 or more of both", c.Events, c.Last)
	}
	w := newWindow(c)
	return &Recorder{trace.NewRecorder(w, trace.RecorderConfig{}), w, time.Now()}, nil
}

// WriteRecording writes the last minutes as a native file, for the command replay and readers of
// Arrow.
func (r *Recorder) WriteRecording(w io.Writer) error {
	if err := r.Flush(); err != nil {
		return err
	}
	t := r.window.trace(r.start)
	t.Name = "last"
	t.Meta = map[string]string{"source": "gc/debug/flight", "clock": "monotonic", "lost": fmt.Sprint(r.Lost())}
	return trace.Write(w, t)
}

// Report writes the number of kept events and the time that they cover.
func (r *Recorder) Report(w io.Writer) error {
	if err := r.Flush(); err != nil {
		return err
	}
	events, span := r.window.held()
	_, err := fmt.Fprintf(w, "The last %v: %d events, about %v of memory; %d lost since the start.\n",
		span.Round(time.Millisecond), events, pressure.Bytes(int64(events)*eventBytes), r.Lost())
	return err
}

const eventBytes = 48 // of a trace.Event
