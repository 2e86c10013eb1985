package policy

import (
	"cmp"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Policy decides at each [Point] whether to collect. It keeps all its state in
// its own value, never blocks and reads no clock. One goroutine at a time calls
// it. Each collector and each replay needs a fresh policy: see [Spec].
type Policy interface {
	// Decide answers one point. It must not block.
	Decide(Point) Decision
	// Observe is told of every finished cycle, also of cycles that the policy did
	// not ask for: after refusals, by explicit calls, and the runtime's own.
	Observe(Cycle)
	// String returns the text form that Parse reads.
	String() string
}

// PointKind says where a policy is asked.
type PointKind uint8

const (
	Allocation PointKind = iota // before an allocation of Request bytes
	Sync                        // before a wait for the device
)

// String returns the name of the kind in lower case.
func (k PointKind) String() string {
	return [...]string{"allocation", "sync"}[k]
}

// A Point is what a policy sees. Bytes are of the space under most pressure.
type Point struct {
	Now       time.Duration   // monotonic, from the start of the collector or the trace
	At        PointKind       //
	Sample    pressure.Sample // live, reserved and limit. Live excludes Request; what the running cycle has freed is still live
	Request   int64           // bytes asked for; 0 at a sync
	Wait      time.Duration   // how long the caller is expected to block anyway; 0 if it will not
	WillBlock bool            // the caller is about to wait
	Allocated int64           // gross bytes allocated since the last cycle
	Freed     int64           // gross bytes freed by the program itself since the last cycle
	LiveAfter int64           // live bytes when the last cycle had settled
	Cost      time.Duration   // expected duration of a cycle started now, without the sweep that the last one left
	Work      time.Duration   // processor time that it is expected to take, for each processor of GOMAXPROCS; 0 = not known, as long as Cost
	Slowdown  float64         // of the program beside a cycle: 0 = none, or not known; 1 = half speed. A collector learns it from its cycles
	Running   bool            // a cycle is under way
	Cycles    uint64          // cycles so far, those of the runtime included
}

// work is the processor time of a cycle that is started now: its cost where
// nobody waits for it.
func (p *Point) work() time.Duration { return cmp.Or(max(0, p.Work), p.Cost) }

// work is the processor time that the cycle took.
func (c *Cycle) work() time.Duration { return cmp.Or(max(0, c.Work), c.Duration) }

// An Action is what a policy asks for.
type Action uint8

const (
	Skip    Action = iota // do not collect
	Overlap               // start a cycle that runs beside the caller
	Block                 // hold the caller until a cycle has settled
)

// String returns skip, overlap or block.
func (a Action) String() string { return [...]string{"skip", "overlap", "block"}[a] }

// A Decision is a policy's answer to a [Point]. The zero value does not collect,
// and has the policy asked again at every allocation. Wake counts until the
// policy is asked again. Any end of a cycle cancels it too: the next allocation
// asks the policy.
type Decision struct {
	Action Action
	Wake   int64  // do not ask again at an allocation before live + request reaches this; 0 = always ask
	Reason string // a short constant, shown by replay explain
}

// A Trigger says who asked for a cycle.
type Trigger uint8

const (
	TriggerPolicy   Trigger = iota // a policy's decision
	TriggerRefusal                 // the ladder, after an allocation did not fit
	TriggerNatural                 // the Go runtime by itself
	TriggerExplicit                // a call of the program's
)

// String returns the name of the trigger in lower case.
func (t Trigger) String() string { return [...]string{"policy", "refusal", "natural", "explicit"}[t] }

// A Cycle reports one collection that has ended and settled.
type Cycle struct {
	Start     time.Duration // when it started, on the clock of Point.Now
	Duration  time.Duration // how long it took, until its yield was given back; for a cycle of the runtime's own, how long it was expected to take
	Work      time.Duration // processor time that it took, for each processor of GOMAXPROCS; 0 = not known, as long as Duration
	Exposed   time.Duration // how long a caller was held beyond its own wait
	Trigger   Trigger
	Action    Action // Overlap if it ran beside the caller
	Freed     int64  // its yield in bytes: exact, measured after it settled
	LiveAfter int64  // live bytes once settled
	Limit     int64  // the limit of the space it was decided for; 0 = none known
	Wanted    int64  // the least live + request of allocations that did not fit and waited for it, or climbed the ladder that ran it; 0 = none
}
