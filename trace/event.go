package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Kind says what an [Event] reports. Its numbers are part of the trace format and never change.
type Kind uint8

const (
	Alloc    Kind = iota // object ID got Bytes; Aux may be a label, the allocation site
	Drop                 // object ID became unreachable
	Free                 // the bytes of object ID returned to the pool; Aux says why: FreeExplicit or FreeCycle
	Sync                 // the caller waited Duration for the device; Aux may be a label, the wait place
	Cycle                // a cycle of Duration yielded Bytes; Aux is a policy.Trigger
	Refuse               // an allocation of Bytes did not fit; Aux is the pool.Step tried next, Duration its time
	Reserve              // the pool took Bytes from its upstream
	Release              // the pool gave Bytes back to its upstream
	Mark                 // an annotation: Aux is its label, Duration its length; Bytes may be a number that the label names
	Decision             // a policy decided: Aux is a label, the reason; Bytes is the policy.Action
	kinds                // number of kinds
)

var kindNames = [kinds]string{"alloc", "drop", "free", "sync", "cycle", "refuse", "reserve", "release", "mark", "decision"}

// String returns the kind's name in lower case, as it appears in tables.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "unknown"
}

// ParseKind is the inverse of [Kind.String].
func ParseKind(text string) (Kind, error) {
	if k := slices.Index(kindNames[:], text); k >= 0 {
		return Kind(k), nil
	}
	return 0, fmt.Errorf("unknown kind %q (want one of %s)", text, strings.Join(kindNames[:], ", "))
}

// Labelled reports whether the Aux of a kind's events is an index into Trace.Labels.
func (k Kind) Labelled() bool {
	return k == Alloc || k == Sync || k == Mark || k == Decision
}

// The Aux of a Free says how the bytes of an object came back.
const (
	FreeExplicit uint32 = iota // the program gave the bytes back itself
	FreeCycle                  // a cycle found the object dead
)

const eventBytes = 48 // of an Event

// An Event is one row of a trace: 48 bytes, no pointers. A field is zero unless the description of
// the event's [Kind] names it.
type Event struct {
	Time     int64          // ns from the start of the trace; the start of an event that has a Duration
	ID       uint64         // identity of the object (Alloc, Drop, Free); unique within a trace
	Bytes    int64          // size or yield, in bytes
	Duration time.Duration  // length of a wait, a cycle or a ladder step
	Stream   uint32         // stream or thread that the event belongs to; 0 if unknown
	Aux      uint32         // a cause, a trigger, a step, or an index into Trace.Labels
	Kind     Kind           //
	Space    pressure.Space // the memory that the event is about
}

// A Sink takes the events of a running program. Packages gc and pool send theirs to one. A
// [Recorder] is a Sink.
//
// The sender sets the Time, by the clock of the sink. For an event that happens now it is Now, and
// for one that ends now it is Now less its Duration. The sink keeps that Time. So the times of all
// events of a sink are comparable, whichever package sent them.
//
// Methods must be safe for concurrent use and must not call the sender.
type Sink interface {
	// Record takes an event.
	Record(Event)
	// Label returns the number of a text, for the Aux of events that have a label.
	Label(text string) uint32
	// Now returns the time since the sink's time 0.
	Now() time.Duration
}

// A Trace is a recording in memory. The zero value is an empty trace. It is a plain value: many
// goroutines may read it at once; only one may change it.
type Trace struct {
	Name   string            // short name for tables, mostly the file's name without its endings
	Meta   map[string]string // provenance: app, machine, clock, policy, limits, source
	Labels []string          // texts that labelled events refer to by Aux; Labels[0] is ""
	Start  time.Time         // wall clock of time 0; zero if unknown
	Events []Event           // sorted by Time
}

// Record appends e.
func (t *Trace) Record(e Event) { t.Events = append(t.Events, e) }

// Label returns the text that e refers to, or "" if it has none.
func (t *Trace) Label(e Event) string {
	if e.Kind.Labelled() && uint64(e.Aux) < uint64(len(t.Labels)) {
		return t.Labels[e.Aux]
	}
	return ""
}

// Sort puts events in the order of a [Trace]: by time, and at equal times Sync events last. Other
// events with equal times keep their order. If the times are in order already, it changes nothing.
func Sort(events []Event) {
	byTime := func(a, b Event) int { return cmp.Compare(a.Time, b.Time) }
	if slices.IsSortedFunc(events, byTime) {
		return
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		switch c := byTime(a, b); {
		case c != 0 || (a.Kind == Sync) == (b.Kind == Sync):
			return c
		case a.Kind == Sync:
			return 1
		}
		return -1
	})
}
