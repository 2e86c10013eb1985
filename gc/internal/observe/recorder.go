package observe

import (
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/internal/registry"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Recorder writes decisions, waits, cycles and memory as events. Its times are on the collector's
// clock.
type Recorder struct {
	Out    trace.Sink
	ahead  time.Duration    // of the sink's clock before the collector's
	last   string           // reason of the last decision at an allocation
	seen   map[string]int64 // the last recorded values, by label
	owners map[Place]piece  // the owners in the recording
	rest   piece            // owners that were too many to be recorded one by one
}

// NewRecorder returns a recorder that writes to out. Now is the time on the collector's clock. If
// the last recorder writes to out, NewRecorder returns it, so that its recording continues.
func NewRecorder(out trace.Sink, now time.Duration, last *Recorder) *Recorder {
	if last != nil && reflect.TypeOf(out).Comparable() && last.Out == out {
		return last
	}
	return &Recorder{Out: out, ahead: out.Now() - now, seen: make(map[string]int64), owners: make(map[Place]piece)}
}

// at converts a time of the collector's clock to the sink's clock.
func (r *Recorder) at(t time.Duration) int64 { return int64(t + r.ahead) }

// Decision records a decision. A policy may be asked at every allocation, so a Skip there is recorded
// only if its reason differs from the last one.
func (r *Recorder) Decision(p *policy.Point, d *policy.Decision) {
	if p.At == policy.Allocation {
		if d.Action == policy.Skip && d.Reason == r.last {
			return
		}
		r.last = d.Reason
	}
	r.Out.Record(trace.Event{
		Time: r.at(p.Now), Kind: trace.Decision, Space: p.Sample.Space,
		Bytes: int64(d.Action), Aux: r.Out.Label(d.Reason),
	})
}

// Span records, under a label, a wait of the program, or a mark for a caller that was held.
func (r *Recorder) Span(kind trace.Kind, begin, length time.Duration, label string, space pressure.Space) {
	r.Out.Record(trace.Event{Time: r.at(begin), Kind: kind, Space: space, Duration: length, Aux: r.Out.Label(label)})
}

// Cycle records a cycle.
func (r *Recorder) Cycle(c *policy.Cycle, space pressure.Space) {
	r.Out.Record(trace.Event{
		Time: r.at(c.Start), Kind: trace.Cycle, Space: space, Duration: c.Duration, Bytes: c.Freed, Aux: uint32(c.Trigger),
	})
}

// Value records a value under a label if it has changed.
func (r *Recorder) Value(at time.Duration, value int64, label string, space pressure.Space) {
	if was, known := r.seen[label]; !known || was != value {
		r.seen[label] = value
		r.Out.Record(trace.Event{Time: r.at(at), Kind: trace.Mark, Space: space, Bytes: value, Aux: r.Out.Label(label)})
	}
}

// A piece is memory that has one identity in a recording.
type piece struct {
	id    uint64
	bytes int64
	label uint32 // the allocation site
	space pressure.Space
}

// identities counts the objects that collectors of the process have recorded. Pools count from 0 and
// leave the highest bit to collectors, so that identities in a recording are unique.
var identities atomic.Uint64

// alloc records a new object.
func (r *Recorder) alloc(bytes int64, label uint32, space pressure.Space) piece {
	x := piece{1<<63 | identities.Add(1), bytes, label, space}
	r.Out.Record(trace.Event{Time: int64(r.Out.Now()), Kind: trace.Alloc, Space: space, ID: x.id, Bytes: bytes, Aux: label})
	return x
}

func (r *Recorder) free(x piece, why uint32) {
	r.Out.Record(trace.Event{Time: int64(r.Out.Now()), Kind: trace.Free, Space: x.space, ID: x.id, Bytes: x.bytes, Aux: why})
}

func (r *Recorder) label(site string) uint32 {
	if site == "" {
		return 0
	}
	return r.Out.Label(site)
}

// A Place is where a registry tracks an owner.
type Place struct {
	In   Owners
	Slot registry.Slot
}

// Owners are the owners of one registry.
type Owners interface {
	Holds(registry.Slot) (bytes int64, ok bool)
	Each(func(slot registry.Slot, bytes int64))
}

// Owned records the bytes of an owner, unless the recording has them. A new size is a new object,
// because objects in a trace keep their size.
func (r *Recorder) Owned(at Place, site string, space pressure.Space) {
	x, known := r.owners[at]
	bytes, ok := at.In.Holds(at.Slot)
	if !ok || known && bytes == x.bytes {
		return
	}
	if known {
		r.free(x, trace.FreeExplicit)
	}
	r.owners[at] = r.alloc(bytes, r.label(site), space)
}

// Released records the end of an owner's memory, if the recording has it.
func (r *Recorder) Released(at Place, why uint32) {
	if x, known := r.owners[at]; known {
		delete(r.owners, at)
		r.free(x, why)
	}
}

// attachOwners is the number of owners that a recording lists when it begins. The buffer of a
// [trace.Recorder] has room for them. The other owners become one object that stays.
const attachOwners = 1 << 14

// Live begins a recording, or continues one, with the tracked owners, so that it has the levels of
// the program.
func (r *Recorder) Live(all []Owners, space pressure.Space) {
	for at, x := range r.owners {
		if bytes, ok := at.In.Holds(at.Slot); !ok || bytes != x.bytes {
			r.Released(at, trace.FreeExplicit)
		}
	}
	if r.rest.bytes > 0 {
		r.free(r.rest, trace.FreeExplicit)
	}
	label, begun, rest := r.label(trace.BeforeLabel), 0, int64(0)
	for _, in := range all {
		in.Each(func(slot registry.Slot, bytes int64) {
			at := Place{in, slot}
			if _, known := r.owners[at]; known {
				return
			}
			if begun++; begun <= attachOwners {
				r.owners[at] = r.alloc(bytes, label, space)
			} else {
				rest += bytes
			}
		})
	}
	if r.rest = (piece{}); rest > 0 {
		r.rest = r.alloc(rest, label, space)
	}
}

// An Account records a level that the program counts or a gauge reads as objects of one recording. A
// rise is a new object. A fall ends the oldest object of that size. Without one it takes from the
// oldest objects. The zero value is ready to use.
type Account struct {
	// Gauge means that the level is an estimate, which changes often. A fall then ends objects only
	// as a whole.
	Gauge bool

	to    *Recorder // the recording; objects of an earlier one are forgotten
	all   []piece   // oldest first
	level int64     // in the recording
	back  int64     // of a gauge: bytes of the oldest object that were taken back
}

// sameSize is the number of old objects among which a fall looks for its size.
const sameSize = 256

// Follow records a new level.
func (l *Account) Follow(to *Recorder, level int64, site string, why uint32, space pressure.Space) {
	if l.to != to {
		*l = Account{Gauge: l.Gauge, to: to}
	}
	level = max(0, level)
	moved := level - l.level
	l.level = level
	switch {
	case moved > 0:
		l.all = append(l.all, to.alloc(moved, to.label(site), space))
		return
	case moved < 0 && !l.Gauge:
		oldest := l.all[:min(len(l.all), sameSize)]
		if i := slices.IndexFunc(oldest, func(x piece) bool { return x.bytes == -moved }); i >= 0 {
			to.free(oldest[i], why)
			copy(oldest[1:], oldest[:i])
			l.all = l.all[1:]
			return
		}
	}
	for l.back -= moved; len(l.all) > 0 && l.back >= l.all[0].bytes; l.all = l.all[1:] {
		l.back -= l.all[0].bytes
		to.free(l.all[0], why)
	}
	if l.back > 0 && !l.Gauge {
		first := l.all[0]
		to.free(first, why)
		l.all[0] = to.alloc(first.bytes-l.back, first.label, space)
		l.back = 0
	}
}
