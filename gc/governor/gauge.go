package governor

import (
	"math"
	"time"
)

// A Gauge judges how cycles change memory that other code counts and frees. Such memory falls once
// finalizers and cleanups have run, but it also moves without them. Make one with [NewGauge]. One
// goroutine at a time may use it.
type Gauge struct {
	Level     int64 // bytes at the last reading
	Allocated int64 // the first level, plus all rises since

	low     int64         // lowest level since the last judgement
	fallen  int64         // sum of the falls from since on, without the bytes that trims gave back
	since   time.Duration // when fallen was last set to 0
	trimmed int64         // GaugeReading.Trimmed at the last reading

	began    time.Duration // start of the last mark
	byItself float64       // rate at which the program freed by itself before that mark, in bytes per ns
	ran      int64         // GaugeReading.Ran at that mark
	outcome  outcome       // of the last cycle, until it is judged

	brought  int64 // bytes that judged cycles brought back
	credited int64 // the part of brought that yields have counted
	ration   ration
	swing    swing
	due      due
}

// A GaugeReading is one reading of a gauge and of the process around it.
type GaugeReading struct {
	Level   int64 // bytes
	Trimmed int64 // bytes so far that trims of an allocator gave back, rather than cycles
	Ran     int64 // finalizers and cleanups run so far, without the collector's own
	Waiting bool  // finalizers or cleanups are due
	Marked  int64 // number of marks so far
	Swept   int64 // number of those whose sweep has ended
	Heap    int64 // bytes of the Go heap that the last cycle kept, at least 4 MiB (where GOGC=100 begins)

	Processor time.Duration // processor time of the process so far, divided by GOMAXPROCS
}

// NewGauge returns a gauge at the given level, in bytes. Trimmed is [GaugeReading].Trimmed at that
// time.
func NewGauge(level, trimmed int64) *Gauge {
	return &Gauge{Level: level, Allocated: level, low: level, trimmed: trimmed, ration: ration{vain: mayKeep + 1, kept: level}}
}

// see takes a reading and adds up the moves of the gauge.
func (g *Gauge) see(r *GaugeReading) {
	was := g.Level
	g.Level = r.Level
	g.Allocated += max(0, r.Level-was)
	trimmed := r.Trimmed - g.trimmed
	g.trimmed = r.Trimmed
	g.fallen = max(0, g.fallen+max(0, was-r.Level)-trimmed)
	if trimmed > 0 { // the program did not need those bytes, and this fall is not its own
		g.ration.kept = min(g.ration.kept, r.Level)
		g.swing.high -= trimmed
	}
	g.low = min(g.low, r.Level)
	g.swing.see(r, g.Judging())
}

// A Look is the result of a reading.
type Look struct {
	Ask           bool  // ask the policy as if Request bytes were allocated on top of Live
	Live, Request int64 // bytes
	Trim          bool  // trim the allocator, because it may keep memory that cycles freed
}

// Look takes a reading, and says whether to ask the policy. Work is the expected work of a cycle.
// While cycles bring memory back, Look asks even if the level stands still. An allocator may then
// reuse freed memory, so that garbage does not show.
func (g *Gauge) Look(at time.Duration, r *GaugeReading, limit int64, work time.Duration) (l Look) {
	was := g.Level
	g.ration.see(at, r.Level)
	_, l.Trim = g.Settled(at, r)
	overAtFirst := limit > 0 && r.Level > limit && !g.Barren()
	switch {
	case g.due.wait(r, at): // memory whose finalizer is due is as good as freed
	case r.Level <= was && g.ration.vain > mayKeep: // nothing grows
	case g.began > 0 && at-g.began < leastGap: // a cycle has only just begun
	case overAtFirst || g.ration.allows(at, r, work, g.swing.bytes):
		l.Ask, l.Live = true, min(was, r.Level)
		l.Request = r.Level - l.Live
	}
	return l
}

// leastGap is the time between two cycles for a gauge. Such cycles run finalizers and cleanups of
// other code. Many bindings crash if one runs during a call: see AUDIT.md.
const leastGap = 10 * time.Millisecond

// Rationed reports whether cycles are so rare that looks at short intervals are not worth their
// cost.
func (g *Gauge) Rationed(at time.Duration) bool { return g.ration.now(at) <= LeastShare }

// Marking reports that a mark begins. If the last cycle has not been judged yet, the two are
// judged as one.
func (g *Gauge) Marking(at time.Duration, r *GaugeReading) {
	g.see(r)
	g.ration.begin(at, r, g.swing.bytes)
	g.began = at
	if g.Judging() {
		return
	}
	if d := at - g.since; d >= leastSpan {
		g.byItself = float64(g.fallen) / float64(d)
	}
	g.outcome = outcome{began: at, grown: r.Level - g.low}
	g.fallen, g.since, g.ran = 0, at, r.Ran
}

// leastSpan is the shortest time from which a rate is taken.
const leastSpan = 2 * time.Millisecond

// Marked reports that a mark has ended. Asked is false if the runtime began it by itself.
func (g *Gauge) Marked(r *GaugeReading, asked bool) {
	g.see(r)
	o := &g.outcome
	if !g.Judging() {
		o.high, o.marks = max(1, r.Level), r.Marked
	}
	o.asked = o.asked || asked
}

// Settled takes a reading, and judges the last cycle once its finalizers and cleanups have run. It
// reports whether no cycle is left to be judged. Trim is as in [Look]: the cycle freed something, or
// callbacks ran, and an allocator may have kept the memory.
func (g *Gauge) Settled(at time.Duration, r *GaugeReading) (judged, trim bool) {
	g.see(r)
	if !g.Judging() || r.Waiting || r.Swept < g.outcome.marks {
		return !g.Judging(), false
	}
	o := g.outcome
	o.freed, o.ran = g.freed(at), r.Ran-g.ran
	brought := o.brought(g.swing.bytes)
	g.swing.fade()
	g.ration.learn(&o, at, r, brought)
	g.brought += o.freed
	g.outcome, g.fallen, g.since, g.low = outcome{}, 0, at, r.Level
	return true, o.ran > 0 || o.freed >= leastYield
}

// Judging reports whether the last cycle still waits to be judged. Until then, falls of the gauge
// are taken for its effect.
func (g *Gauge) Judging() bool { return g.outcome.high > 0 }

// freed returns the bytes that the gauge has fallen by since the last mark began. It subtracts the
// bytes that the program frees by itself in such a time.
func (g *Gauge) freed(at time.Duration) int64 {
	return max(0, g.fallen-int64(min(g.byItself*float64(at-g.since), math.MaxInt64/2)))
}

// Credit returns the bytes that cycles have brought back and that it has not returned before. It
// is an estimate.
func (g *Gauge) Credit(at time.Duration) int64 {
	brought := g.brought
	if g.Judging() {
		brought += g.freed(at)
	}
	credit := max(0, brought-g.credited)
	g.credited += credit
	return credit
}

// Barren reports whether the last cycles have brought back almost nothing.
func (g *Gauge) Barren() bool { return g.ration.vain > mayKeep && g.ration.worth.Cycles > 0 }

// Due reports whether the gauge waits for finalizers or cleanups before it asks for a cycle.
func (g *Gauge) Due() bool { return g.due.waits }

// An outcome is the effect of a cycle on a gauge.
type outcome struct {
	asked bool          // the runtime did not begin the cycle by itself
	began time.Duration // start of its mark
	marks int64         // number of marks so far, its own included
	high  int64         // level when the mark had ended; 0 = nothing to judge
	grown int64         // bytes by which the level at its start exceeded the lowest level before
	freed int64         // bytes by which the gauge fell, less those that the program frees by itself
	ran   int64         // finalizers and cleanups that ran
}

const (
	barrenShare = 0.05    // a cycle that frees this share of a gauge, and leastFreed, has brought memory back
	leastFreed  = 1 << 20 // bytes
	leastYield  = 2 << 20 // bytes that suffice, too, if they are half of the growth before the cycle
)

// brought reports whether the gauge fell because of the cycle. Alone is the number of bytes by
// which the gauge falls without cycles.
func (o *outcome) brought(alone int64) bool {
	return o.freed > alone && (float64(o.freed) >= max(leastFreed, barrenShare*float64(o.high)) || o.freed >= leastYield && 2*o.freed >= o.grown)
}

// A due tracks queued finalizers and cleanups. A gauge asks for no cycle until they have run: it
// would find little more, and more would queue up behind them. If none runs for stuckAfter, one of
// them blocks. The gauge then asks again, so that other memory is still freed.
type due struct {
	ran   int64 // callbacks so far
	since time.Duration
	waits bool
}

const stuckAfter = 10 * time.Second

func (d *due) wait(r *GaugeReading, at time.Duration) bool {
	if r.Ran != d.ran || !r.Waiting {
		*d = due{ran: r.Ran, since: at}
	}
	d.waits = r.Waiting && at-d.since < stuckAfter
	return d.waits
}
