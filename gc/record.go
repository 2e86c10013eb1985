package gc

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A recorder turns what happens into events. Nil is off.
type recorder struct {
	out   trace.Sink
	ahead time.Duration // of the sink's clock before the collector's
	last  string        // reason of the last decision at an allocation
	seen  machineSeen   // what was recorded last
}

// setRecorder replaces the recorder. The caller holds mu, or is New.
func (c *Collector) setRecorder(out trace.Sink) {
	c.recording.Store(out != nil)
	c.recorder = nil
	if out != nil {
		c.recorder = &recorder{out: out, ahead: out.Now() - c.Now()}
	}
}

// at turns a time of the collector's clock into one of the sink's.
func (r *recorder) at(t time.Duration) int64 { return int64(t + r.ahead) }

// decision records an answer. A policy may be asked at every allocation, so a
// Skip there is recorded only where its reason changes.
func (r *recorder) decision(p policy.Point, d policy.Decision) {
	if p.At == policy.Allocation {
		if d.Action == policy.Skip && d.Reason == r.last {
			return
		}
		r.last = d.Reason
	}
	r.out.Record(trace.Event{
		Time: r.at(p.Now), Kind: trace.Decision, Space: p.Sample.Space,
		Bytes: int64(d.Action), Aux: r.out.Label(d.Reason),
	})
}

func (r *recorder) sync(begin, waited time.Duration, place string, g *Gate) {
	r.out.Record(trace.Event{
		Time: r.at(begin), Kind: trace.Sync, Space: space(g), Duration: waited, Aux: r.out.Label(place),
	})
}

// PauseLabel is the label of the Mark event that a pause beyond the caller's own wait is.
const PauseLabel = "exposed pause"

func (r *recorder) pause(begin, length time.Duration, g *Gate) {
	r.out.Record(trace.Event{
		Time: r.at(begin), Kind: trace.Mark, Space: space(g), Duration: length, Aux: r.out.Label(PauseLabel),
	})
}

func (r *recorder) cycle(c policy.Cycle, g *Gate) {
	r.out.Record(trace.Event{
		Time: r.at(c.Start), Kind: trace.Cycle, Space: space(g), Duration: c.Duration,
		Bytes: c.Freed, Aux: uint32(c.Trigger),
	})
}

// Labels of the Mark events whose Bytes are a collector's reading of its machine: they are recorded after a cycle if they
// have changed.
const (
	HeapLabel       = "gc: bytes of the Go heap that a cycle scans"
	ProcessorsLabel = "gc: processors"
	SlowdownLabel   = "gc: slowdown beside a cycle, millionths"
)

var machineLabels = [...]string{HeapLabel, ProcessorsLabel, SlowdownLabel}

// machineSeen is a reading of the machine, in the order of machineLabels.
type machineSeen [len(machineLabels)]int64

// machine records a reading at a time of the collector's clock.
func (r *recorder) machine(at time.Duration, g *Gate, seen machineSeen) {
	for i, x := range seen {
		if x != r.seen[i] {
			r.out.Record(trace.Event{Time: r.at(at), Kind: trace.Mark, Space: space(g), Bytes: x, Aux: r.out.Label(machineLabels[i])})
		}
	}
	r.seen = seen
}

// recordAlloc records that bytes came under an identity, and where; recordFree that they came back, and why.
func (c *Collector) recordAlloc(id uint64, bytes int64, site string, space pressure.Space) {
	c.recordNow(trace.Event{Kind: trace.Alloc, Space: space, ID: id, Bytes: bytes}, site)
}

func (c *Collector) recordFree(id uint64, bytes int64, why uint32, space pressure.Space) {
	c.recordNow(trace.Event{Kind: trace.Free, Space: space, ID: id, Bytes: bytes, Aux: why}, "")
}

func (c *Collector) recordNow(e trace.Event, label string) {
	c.mu.Lock()
	defer c.unlock()
	c.record(func(to *recorder) {
		e.Time = int64(to.out.Now())
		if label != "" {
			e.Aux = to.out.Label(label)
		}
		to.out.Record(e)
	})
}

func space(g *Gate) pressure.Space {
	if g == nil {
		return pressure.Host
	}
	return g.source.Sample().Space
}
