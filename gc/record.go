package gc

import (
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A recorder turns what happens into events. Nil is off.
type recorder struct {
	out   trace.Sink
	ahead time.Duration // of the sink's clock before the collector's
	last  string        // reason of the last decision at an allocation
}

func (c *Collector) newRecorder(out trace.Sink) *recorder {
	if out == nil {
		return nil
	}
	return &recorder{out: out, ahead: out.Now() - c.Now()}
}

// at turns a time of the collector's clock into one of the sink's.
func (r *recorder) at(t time.Duration) int64 { return int64(t + r.ahead) }

// decision records an answer. A policy may be asked at every allocation, so a
// Skip there is recorded only where its reason changes.
func (r *recorder) decision(p Point, d Decision) {
	if p.At == Allocation {
		if d.Action == Skip && d.Reason == r.last {
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

// pauseLabel is the label of the Mark that a pause beyond the caller's own wait is.
const pauseLabel = "exposed pause"

func (r *recorder) pause(begin, length time.Duration, g *Gate) {
	r.out.Record(trace.Event{
		Time: r.at(begin), Kind: trace.Mark, Space: space(g), Duration: length, Aux: r.out.Label(pauseLabel),
	})
}

func (r *recorder) cycle(c Cycle, g *Gate) {
	r.out.Record(trace.Event{
		Time: r.at(c.Start), Kind: trace.Cycle, Space: space(g), Duration: c.Duration,
		Bytes: c.Freed, Aux: uint32(c.Trigger),
	})
}

func space(g *Gate) pressure.Space {
	if g == nil {
		return pressure.Host
	}
	return g.source.Sample().Space
}
