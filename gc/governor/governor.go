package governor

import (
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A Governor holds the rules of one collector. Make one with [New].
type Governor struct {
	Costs             // expected of a cycle that begins now
	Cycles     uint64 // cycles so far, with the runtime's own; the shell updates it
	Processors int    // processors that the program may use; the shell updates it
	Heap       int64  // live Go heap after the last cycle, in bytes, 0 = unknown; the shell updates it
	Running    bool   // a cycle that [Governor.Began] announced has not settled yet

	// Asked, Answer and Top are the question and the answer of the last call, until the next call.
	// A shell shows them to observers.
	Asked  policy.Point
	Answer policy.Decision // a cycle that the caps forbid becomes a skip
	Top    *Memory         // the memory under most pressure; nil if the policy was not asked

	caps     Caps
	policy   policy.Policy
	learned  *policy.Expectation // nil: the shell sets Costs
	scan     uint64
	memories []*Memory
	next     time.Duration // earliest time of the next cycle that the governor orders
	budget   heldBudget
	idle     idle
	progress progress
	closed   bool
}

// Costs are the expected costs of a cycle: see [policy.Point].
type Costs struct {
	Cost, Work time.Duration
	Slowdown   float64
}

// An Order tells the shell what to do. The zero value asks for nothing.
type Order struct {
	Begin bool // begin a cycle, and call Began with the cause
	Cause
	Hold bool // hold the caller until the current cycle, or the one that begins, has settled
}

// New returns a governor that asks p, for a program with one processor. Caps must be valid: see
// [Caps.Check].
func New(caps Caps, p policy.Policy) *Governor {
	_ = caps.Check() // fills in the defaults
	return &Governor{caps: caps, policy: p, Processors: 1}
}

// Learn makes the governor learn its costs from reported cycles. Without Learn, the shell sets
// them. The shell must call See before the next point.
func (g *Governor) Learn() {
	g.learned = policy.NewExpectation(g.Processors)
	g.progress.wanted = true
}

// See reports the size of a cycle that would begin now. Scan is the bytes of the Go heap to scan,
// and tracked is the number of objects to check.
func (g *Governor) See(scan uint64, tracked int) {
	g.scan = scan
	if e := g.learned; e != nil {
		e.See(scan, tracked)
		g.Costs = Costs{e.Cost, e.Work, g.progress.slowdown()}
	}
}

// Caps returns the caps, with their defaults filled in.
func (g *Governor) Caps() Caps { return g.caps }

// Policy returns the policy in use.
func (g *Governor) Policy() policy.Policy { return g.policy }

// SetPolicy replaces the policy by p, which must be fresh.
func (g *Governor) SetPolicy(p policy.Policy) {
	g.policy = p
	g.Changed()
}

// Add puts m under the governor. It takes the reading of m as the state after the last cycle.
func (g *Governor) Add(m *Memory) {
	m.rebase()
	g.progress.forget()
	if g.closed {
		m.Wake = math.MaxInt64
	}
	g.memories = append(g.memories, m)
}

// Remove takes m out of the governor.
func (g *Governor) Remove(m *Memory) {
	g.progress.forget()
	g.memories = slices.DeleteFunc(g.memories, func(x *Memory) bool { return x == m })
}

// Changed reports that limits or the policy have changed. It ends the rest of each memory, and the
// policy is asked at the next allocation.
func (g *Governor) Changed() {
	if g.closed {
		return
	}
	for _, m := range g.memories {
		m.futile, m.Rest = 0, Rest{}
	}
	g.wakeAll(0)
}

// Close stops the governor. From then on it does not ask the policy, orders nothing, and reports
// no cycle to the policy.
func (g *Governor) Close() {
	g.closed = true
	g.wakeAll(math.MaxInt64)
}

func (g *Governor) wakeAll(wake int64) {
	for _, m := range g.memories {
		m.Wake = wake
	}
}

// Allocate asks the policy before request bytes of m are handed out. A shell calls it once live +
// request has reached m.Wake and m.Rest is over. Allocations of a soft memory or a gauge are never
// held.
func (g *Governor) Allocate(at time.Duration, m *Memory, request int64) Order {
	g.Asked = policy.Point{Now: at, At: policy.Allocation, Request: request}
	if !m.Gauge { // a gauge does not know when the program allocates
		g.progress.point(at, g, request, m.Limit/smallRequest)
	}
	o := g.decide(m)
	o.Hold = o.Hold && !m.Soft && !m.Gauge
	if m.Gauge {
		o.Action = min(o.Action, policy.Overlap)
	}
	return o
}

// Sync asks the policy before the program waits. Wait is the expected length of the wait. If the
// order says Hold, the shell holds the caller after its own wait.
func (g *Governor) Sync(at, wait time.Duration) Order {
	g.Asked = policy.Point{Now: at, At: policy.Sync, Wait: wait, WillBlock: true}
	g.progress.point(at, g, 0, 0)
	return g.decide(nil)
}

// Due reports whether the policy wants a cycle at a sync point where the caller has no wait. It
// begins no cycle.
func (g *Governor) Due(at time.Duration) bool {
	g.Asked = policy.Point{Now: at, At: policy.Sync}
	g.decide(nil)
	return g.Answer.Action != policy.Skip
}

// Progress returns how much longer the program takes beside a cycle, as a share of the time without
// one; 0 until some cycles have been compared. Without Learn it is learned from the first call on.
func (g *Governor) Progress() (slowdown float64) {
	g.progress.wanted = true
	return g.progress.slowdown()
}

// counted returns the bytes that are live, and those allocated so far, without gauges, which do not
// know the latter.
func (g *Governor) counted() (live, allocated int64) {
	for _, m := range g.memories {
		if !m.Gauge {
			live += m.Live
			allocated += m.Allocated
		}
	}
	return live, allocated
}

// decide asks the policy about the memory under most pressure, and applies the caps. Asks is the
// memory that allocates; it may be nil.
func (g *Governor) decide(asks *Memory) (o Order) {
	p := &g.Asked
	g.Answer = policy.Decision{}
	if g.Top = g.MostPressed(asks, p.Request); g.Top == nil || g.closed {
		return o
	}
	g.fill(p, g.Top)
	g.Answer = g.policy.Decide(*p)
	d := &g.Answer
	if d.Action != policy.Skip && !g.Running && !g.mayBegin(p.Now) {
		*d = policy.Decision{Reason: CappedReason}
	}
	g.wakeAt(d.Wake, g.Top)
	return Order{
		Begin: d.Action != policy.Skip && !g.Running, Hold: d.Action == policy.Block,
		Cause: Cause{policy.TriggerPolicy, d.Action, d.Reason, g.Top},
	}
}

// fill completes a point with the state of m.
func (g *Governor) fill(p *policy.Point, m *Memory) {
	p.Sample, p.LiveAfter = g.shown(m)
	p.Allocated = m.Allocated - m.allocated
	p.Freed = p.Allocated + p.LiveAfter - p.Sample.Live
	p.Cost, p.Work, p.Slowdown = g.Cost, g.Work, g.Slowdown
	p.Running, p.Cycles, p.Heap = g.Running, g.Cycles, g.Heap
}

// Refuse reports that request bytes of m do not fit. A soft memory goes above its limit. Refuse
// orders an overlapped cycle for it, if no cycle is under way and the memory does not rest. For
// other memories Refuse notes the bytes that are wanted. The cycle that makes room reports them:
// see [policy.Cycle].
func (g *Governor) Refuse(at time.Duration, m *Memory, request int64) (o Order) {
	if m.Soft {
		o.Begin = !g.closed && !g.Running && m.Rest.Over(at, m.Live) && g.mayBegin(at)
		o.Cause = Cause{Trigger: policy.TriggerRefusal, Action: policy.Overlap, Memory: m}
	} else if wanted := m.Live + request; m.wanted == 0 || wanted < m.wanted {
		m.wanted = wanted
	}
	return o
}
