package frame

import (
	"fmt"
	"runtime"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/trace"
)

// record makes the program record itself, by own, account or gauge, while it gives everything
// back by hand. So each object's end in the recording is the moment at which the program was
// done with it: under own alone, nobody sees that until a cycle finds the object dead. It
// is recorded as a drop, since a replay asks what a program holds that leaves the rest to cycles.
func (w *Way) record(path, by, client string, c Client) (finish func() error, err error) {
	if !w.Closes() {
		return nil, fmt.Errorf("way %s cannot be recorded: nobody knows when an object is not needed any more", w.name)
	}
	if err := w.count(by, "never", c); err != nil {
		return nil, err
	}
	r, err := trace.Record(path, &trace.Trace{
		Name: client, Start: time.Now(),
		Meta: map[string]string{"app": "cmd/clients/" + client, "go": runtime.Version(), "clock": "monotonic", "counted by": by},
	}, trace.RecorderConfig{})
	if err != nil {
		return nil, err
	}
	w.collector.SetRecorder(dropping{r})
	return r.Close, nil
}

// dropping records what was given back as dropped.
type dropping struct{ trace.Sink }

func (d dropping) Record(e trace.Event) {
	if e.Kind == trace.Free {
		e.Kind, e.Aux = trace.Drop, 0
	}
	d.Sink.Record(e)
}

// rest waits between two phases of the work, and says so in a recording.
func (w *Way) rest(d time.Duration) {
	sleep := func() error { time.Sleep(d); return nil }
	if recorded := w.Closes() && w.collector != nil; recorded && d > 0 {
		w.collector.Sync(&gc.WaitPlace{Name: "idle"}, sleep)
		return
	}
	sleep()
}
