package gc

import (
	"fmt"
	"reflect"

	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// PauseLabel is the label of the Mark event of a pause beyond the caller's own wait.
const PauseLabel = "exposed pause"

// Labels of the Mark events whose Bytes are a collector's reading of its machine. A reading that
// has changed is recorded after a cycle.
const (
	HeapLabel       = "gc: bytes of the Go heap that a cycle scans"
	ProcessorsLabel = "gc: processors"
	SlowdownLabel   = "gc: slowdown beside a cycle, millionths"
)

// setRecorder replaces the recorder. A recording begins with the live memory. The caller holds mu,
// or is build.
func (c *Collector) setRecorder(out trace.Sink) {
	c.recording.Store(out != nil)
	c.observed.recorder = nil
	if out == nil {
		return
	}
	c.observed.recorder = observe.NewRecorder(out, c.Now(), c.observed.recorded)
	c.observed.recorded = c.observed.recorder
	c.record(func(to *observe.Recorder) {
		for _, g := range c.gates {
			if gauge := g.gauge(); gauge != nil {
				gauge.log.Follow(to, gauge.seen.Load().level, gaugeSite, trace.FreeExplicit, pressure.Host)
			}
		}
		o := c.owned.Load()
		if o == nil {
			return
		}
		for _, a := range o.all() {
			a.record(to, trace.BeforeLabel)
		}
		var owners []observe.Owners
		for _, k := range *o.kinds.Load() {
			owners = append(owners, k.tracked())
		}
		to.Live(owners, o.space)
	})
}

// record calls f with the recorder, if there is one. The caller holds mu.
func (c *Collector) record(f func(*observe.Recorder)) {
	if c.observed.recorder == nil {
		return
	}
	defer c.contain(func(err error) {
		c.setRecorder(nil)
		c.fail(fmt.Errorf("gc: the recorder %w", err))
	})
	f(c.observed.recorder)
}

// recordNow is record for a caller that does not hold mu.
func (c *Collector) recordNow(f func(*observe.Recorder)) {
	if c.recording.Load() {
		c.mu.Lock()
		defer c.unlock()
		c.record(f)
	}
}

// record records the present level of a.
func (a *account) record(to *observe.Recorder, site string) {
	bytes, _ := a.read()
	a.log.Follow(to, bytes, site, trace.FreeExplicit, a.o.space)
}

// siteOf returns the caller's stack outside this package, as a recording has it.
func siteOf() string { return observe.Site(packagePath) }

var packagePath = reflect.TypeFor[Collector]().PkgPath() + "."
