package frame

import (
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/arrowfile"
)

// A recording of way close knows what no recording of a garbage-collected program
// does: the moment at which a request is done with its memory. In a replay that is when the
// object becomes unreachable.
type recording struct {
	mu    sync.Mutex
	begin time.Time
	trace trace.Trace
	last  uint64 // ID of the newest object
}

func newRecording(client string) *recording {
	return &recording{begin: time.Now(), trace: trace.Trace{
		Name: client, Start: time.Now(),
		Meta: map[string]string{"app": "cmd/clients/" + client, "go": runtime.Version(), "clock": "monotonic"},
	}}
}

// add stamps an event and keeps it. A nil recording is off.
func (r *recording) add(e trace.Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Time = int64(time.Since(r.begin) - e.Duration)
	r.trace.Events = append(r.trace.Events, e)
}

// Recorded says that an object of so many bytes lives until the returned function, which calls
// done, is called.
func (w *Way) Recorded(bytes int64, done func()) func() {
	r := w.recording
	if r == nil {
		return done
	}
	r.mu.Lock()
	r.last++
	id := r.last
	r.mu.Unlock()
	r.add(trace.Event{Kind: trace.Alloc, ID: id, Bytes: bytes})
	return func() {
		r.add(trace.Event{Kind: trace.Drop, ID: id})
		done()
	}
}

// idled notes a wait that has just ended.
func (r *recording) idled(d time.Duration) { r.add(trace.Event{Kind: trace.Sync, Duration: d}) }

func (r *recording) write(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	trace.Sort(r.trace.Events)
	trace.SetSizes(r.trace.Events)
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = arrowfile.Write(file, &r.trace)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
