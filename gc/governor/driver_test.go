package governor_test

import (
	"math"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

const (
	ms  = time.Millisecond
	mib = 1 << 20
)

// answers is a policy that gives one answer, and keeps what it was asked and told.
type answers struct {
	policy.Decision
	asked []policy.Point
	told  []policy.Cycle
}

func (p *answers) Decide(at policy.Point) policy.Decision {
	p.asked = append(p.asked, at)
	return p.Decision
}
func (p *answers) Observe(c policy.Cycle) { p.told = append(p.told, c) }
func (p *answers) String() string         { return "answers" }

// A driver is a shell on virtual time. Its program allocates and drops, and each cycle frees what was dropped
// before it began.
type driver struct {
	t        *testing.T
	g        *governor.Governor
	p        *answers
	now      time.Duration
	memories []*memory

	length time.Duration // of a cycle
	work   time.Duration // of it, of all processors
	held   time.Duration // the part of it for which callers were held
	end    time.Duration // of the cycle under way
	run    governor.Run  // it
	holds  []hold
	cycles []policy.Cycle
}

type memory struct {
	governor.Memory
	garbage, doomed int64 // dropped, and dropped before the cycle under way began
}

type hold struct{ from, to time.Duration }

func newDriver(t *testing.T, caps governor.Caps, action policy.Action) *driver {
	d := &driver{t: t, p: &answers{Decision: policy.Decision{Action: action, Reason: "scripted"}}, length: 10 * ms, work: ms}
	d.g = governor.New(caps, d.p)
	d.g.Costs.Cost = d.length
	return d
}

// add adds a memory with a limit in MiB.
func (d *driver) add(space pressure.Space, limit int64) *memory {
	m := &memory{}
	m.Space, m.Limit = space, limit*mib
	d.g.Add(&m.Memory)
	d.memories = append(d.memories, m)
	return m
}

// drop makes bytes of m garbage.
func (m *memory) drop(bytes int64) { m.garbage += bytes }

// put makes bytes of m live without asking anybody.
func (m *memory) put(bytes int64) { m.Live += bytes; m.Allocated += bytes }

// pass lets time go by, and the cycle under way end when it is due.
func (d *driver) pass(by time.Duration) {
	to := d.now + by
	if d.g.Running && d.end <= to {
		d.settle()
	}
	d.now = to
}

// settle ends the cycle under way.
func (d *driver) settle() {
	d.now = max(d.now, d.end)
	for _, m := range d.memories {
		m.Freed = m.doomed
		m.Live -= m.doomed
		m.garbage -= m.doomed
		m.doomed = 0
	}
	d.run.Duration, d.run.Exposed, d.run.Processor, d.run.Tracked = d.length, d.held, d.work, 1
	d.g.Cycles++
	d.cycles = append(d.cycles, d.g.Settled(d.now, &d.run))
}

// obey carries an order out. Callers who are held wait for the cycle.
func (d *driver) obey(o governor.Order) (began bool) {
	if o.Begin {
		if d.g.Running {
			d.t.Fatal("a cycle is to begin while one is under way")
		}
		d.begin(o.Cause)
	}
	if o.Hold {
		if !d.g.Running {
			d.t.Fatal("a caller is to be held for no cycle")
		}
		d.settle()
	}
	return o.Begin
}

func (d *driver) begin(why governor.Cause) *governor.Run {
	for _, x := range d.memories {
		x.doomed = x.garbage
	}
	d.end = d.now + d.length
	d.run = d.g.Began(d.now, why)
	return &d.run
}

// allocate adds bytes to m as a shell does: it asks where the wake level is reached and the rest is over. It
// reports whether a cycle began.
func (d *driver) allocate(m *memory, bytes int64) (began bool) {
	if m.Live+bytes >= m.Wake && m.Rest.Over(d.now, m.Live) {
		began = d.obey(d.g.Allocate(d.now, &m.Memory, bytes))
	}
	m.put(bytes)
	return began
}

// hold counts that a caller is told to wait from now on.
func (d *driver) hold(length time.Duration) {
	if length > 0 {
		d.holds = append(d.holds, hold{d.now, d.now + length})
	}
}

// heldIn is the time of a span in which somebody was told to wait.
func (d *driver) heldIn(from, to time.Duration) (sum time.Duration) {
	last := from
	for _, h := range d.holds { // sorted by when they begin
		begin, end := max(h.from, last), min(h.to, to)
		if end > begin {
			sum += end - begin
			last = end
		}
	}
	return sum
}

// between checks that a figure is within bounds.
func between[T int | int64 | float64 | time.Duration](t *testing.T, what string, got, least, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

const ever = time.Duration(math.MaxInt64)
