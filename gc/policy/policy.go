package policy

import (
	"cmp"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// A Policy decides at each [Point] whether to collect. It keeps all its state in its own value,
// never blocks and reads no clock. One goroutine at a time calls it. Each collector and each replay
// needs a fresh policy: see [Spec].
type Policy interface {
	// Decide answers one point. It must not block.
	Decide(Point) Decision
	// Observe takes every finished cycle. Some are not the policy's: cycles after refusals, by
	// explicit calls, and of the runtime's own.
	Observe(Cycle)
	// String returns the text form that Parse reads.
	String() string
}

// PointKind is the place at which a policy is asked.
type PointKind uint8

const (
	Allocation PointKind = iota // before an allocation of Request bytes
	Sync                        // before a wait for the device
)

// String returns the name of the kind in lower case.
func (k PointKind) String() string {
	return [...]string{"allocation", "sync"}[k]
}

// A Point is one question to a policy. Bytes are those of the space under most pressure.
type Point struct {
	Now       time.Duration   // monotonic, from the start of the collector or the trace
	At        PointKind       // an allocation or a sync point
	Sample    pressure.Sample // live, reserved and limit. Live excludes Request, and includes bytes of the running cycle
	Request   int64           // bytes asked for; 0 at a sync
	Wait      time.Duration   // the caller is expected to block for this long anyway; 0 if it will not
	WillBlock bool            // the caller is about to wait
	Allocated int64           // gross bytes allocated since the last cycle
	Freed     int64           // gross bytes freed by the program itself since the last cycle
	LiveAfter int64           // live bytes when the last cycle had settled
	Heap      int64           // bytes of the Go heap that the last cycle kept; 0 = not known
	Cost      time.Duration   // expected duration of a cycle started now, without the sweep of the last one
	Work      time.Duration   // its expected processor time divided by GOMAXPROCS; 0 = not known: use Cost
	Slowdown  float64         // of the program beside a cycle: 0 = none, or not known; 1 = half speed
	Running   bool            // a cycle is under way
	Cycles    uint64          // cycles so far, including those of the runtime
}

// work is the processor time of a cycle that is started now, or its cost where that is not known.
func (p *Point) work() time.Duration { return cmp.Or(max(0, p.Work), p.Cost) }

// work is the processor time that the cycle took.
func (c *Cycle) work() time.Duration { return cmp.Or(max(0, c.Work), c.Duration) }

// An Action is the answer of a policy.
type Action uint8

const (
	Skip    Action = iota // do not collect
	Overlap               // start a cycle that runs beside the caller
	Block                 // hold the caller until a cycle has settled
)

// String returns skip, overlap or block.
func (a Action) String() string { return [...]string{"skip", "overlap", "block"}[a] }

// A Decision is a policy's answer to a [Point]. The zero value does not collect, and the policy is
// asked again at the next allocation. Wake holds until the policy is asked again, or until a cycle
// ends.
type Decision struct {
	Action Action
	Wake   int64  // ask again at an allocation once live + request reaches this; 0 = always ask
	Reason string // a short constant, shown by replay run --why
}

// A Trigger says who asked for a cycle.
type Trigger uint8

const (
	TriggerPolicy   Trigger = iota // a policy's decision
	TriggerRefusal                 // the ladder, after an allocation did not fit
	TriggerNatural                 // the Go runtime by itself
	TriggerExplicit                // a call by the program
)

// String returns the name of the trigger in lower case.
func (t Trigger) String() string { return [...]string{"policy", "refusal", "natural", "explicit"}[t] }

// A Cycle reports one collection that has ended and settled.
type Cycle struct {
	Start     time.Duration // when it started, on the clock of Point.Now
	Duration  time.Duration // until its yield was given back; for a natural cycle, which is not timed, the expected one
	Work      time.Duration // processor time divided by GOMAXPROCS; 0 = not known: use Duration
	Exposed   time.Duration // for which a caller was held beyond its own wait
	Trigger   Trigger
	Action    Action // Overlap if it ran beside the caller
	Freed     int64  // its yield in bytes, measured after it settled; an estimate for a gauge
	LiveAfter int64  // live bytes once settled
	Limit     int64  // the limit of the space it was decided for; 0 = none known
	Wanted    int64  // least live + request of the allocations that did not fit and waited for it; 0 = none
}
