package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

const never = math.MaxInt64

// A base is the state of one run in the base world. Its methods take the trace time of an event
// and the totals before it.
type base struct {
	policy policy.Policy
	cfg    Config
	space  pressure.Space
	log    *Log

	share   float64  // of a full cycle's cost that the policy's cycles have: see cudajl
	learned *learner // what the policy is told; nil: the truth

	shift int64 // ns by which the program has been delayed
	freed int64 // bytes that cycles have freed
	count int64 // objects that cycles have freed
	wake  int64 // ask at an allocation once live + request reaches this
	bar   int64 // an allocation matters once live + request reaches this: it wakes the policy, or is refused
	peak  int64 // most live bytes so far

	wanted int64 // live + request of what did not fit since the last cycle ended; 0 = none

	running  bool  // an overlapped cycle is under way
	deadline int64 // trace time from which the cycle may have ended; never if there is none
	cycle    struct {
		at    totals
		start int64 // virtual
		end   int64 // virtual
		held  int64 // ns for which it has held the program

		// Where cycles slow the program:
		t      int64   // trace time of the last step
		waited int64   // sum of the waits before it
		rest   float64 // of a ns that it has lost
	}

	last      totals // when the last cycle settled
	liveAfter int64
	yielded   int64 // objects freed by the last cycle
	cycles    uint64
	area      area
	res       Result
}

// An area integrates live and garbage over elapsed time. It holds what the
// workload does not know: pauses add to it, and freed bytes subtract from it from
// the moment at which they were freed.
type area struct {
	live, garbage float64 // byte ns added by pauses
	freed, moment float64 // sum of freed bytes, and of freed bytes x the time at which they were freed
	late          []yield // of the newest cycle, and of those that ended after it began: they may end after the trace does
}

// A yield is what a cycle freed, and when.
type yield struct{ bytes, end float64 }

// free takes the yield of a cycle that began at a time and ended at another.
func (a *area) free(bytes, begin, end int64) {
	a.late = slices.DeleteFunc(a.late, func(y yield) bool {
		over := y.end <= float64(begin)
		if over {
			a.freed += y.bytes
			a.moment += y.bytes * y.end
		}
		return over
	})
	a.late = append(a.late, yield{float64(bytes), float64(end)})
}

// absent is the integral of what cycles had freed, up to elapsed.
func (a *area) absent(elapsed float64) float64 {
	sum := a.freed*elapsed - a.moment
	for _, y := range a.late {
		sum += y.bytes * max(0, elapsed-y.end)
	}
	return sum
}

func newBase(w *Workload, p policy.Policy, cfg Config) *base {
	m := &base{policy: p, cfg: cfg, space: w.Space, log: cfg.Log, deadline: never, area: area{late: make([]yield, 0, 4)}}
	m.setWake(0)
	m.res = Result{Trace: w.Name, LimitBytes: cfg.Limit, Span: w.Span, Cycle: cfg.Cost.Of(0, 0)}
	m.res.Ladder = cfg.Ladder.Of(m.res.Cycle)
	m.res.LimitFactor = float64(cfg.Limit) / float64(max(1, w.PeakReachable))
	if p != nil {
		m.res.Policy = p.String()
	}
	m.share = 1
	if y, ok := p.(interface{ CycleShare() float64 }); ok && y.CycleShare() > 0 {
		m.share = y.CycleShare()
	}
	if cfg.Told.Learned {
		m.learned = newLearner(1, int64(cfg.Cost.HeapMiB*(1<<20)), cfg.Cost.Slowdown, cfg.Seed)
	}
	return m
}

func (m *base) setWake(wake int64) {
	if wake > largest { // above every sum of bytes
		wake = never
	}
	m.wake, m.bar = wake, wake
	if m.cfg.Limit > 0 {
		m.bar = min(wake, m.cfg.Limit+1)
	}
}

func (m *base) alloc(t, z int64, at *totals) {
	m.advance(t, at)
	if at.net-m.freed+z >= m.wake {
		m.obey(m.ask(policy.Allocation, t, z, at), t, 0, at)
	}
	m.admit(t, z, at)
}

func (m *base) sync(t, w int64, at *totals) {
	m.advance(t, at)
	m.obey(m.ask(policy.Sync, t, w, at), t, w, at)
}

// admit hands out z bytes, by way of the ladder if they do not fit.
func (m *base) admit(t, z int64, at *totals) {
	if !m.fits(z, at) {
		m.wanted = at.net - m.freed + z
		if m.running {
			m.await(t, 0, at)
		}
		if !m.fits(z, at) {
			m.wanted = at.net - m.freed + z
			m.climb(t, at)
			if !m.fits(z, at) {
				m.res.FailedAllocs++
			}
		}
	}
	m.peak = max(m.peak, at.net-m.freed+z)
}

func (m *base) fits(z int64, at *totals) bool {
	return m.cfg.Limit <= 0 || at.net-m.freed+z <= m.cfg.Limit
}

func (m *base) ask(at policy.PointKind, t, arg int64, sum *totals) policy.Decision {
	p := &policy.Point{
		Now:       time.Duration(t + m.shift),
		At:        at,
		Sample:    pressure.Sample{Space: m.space, Live: sum.net - m.freed, Reserved: sum.net - m.freed, Limit: m.cfg.Told.limit(m.cfg.Limit)},
		Allocated: sum.gross - m.last.gross,
		Freed:     (sum.gross - sum.net) - (m.last.gross - m.last.net),
		LiveAfter: m.liveAfter,
		Cost:      time.Duration(m.share * float64(m.cfg.Cost.Of(sum.objects()-m.count, m.yielded))),
		Slowdown:  m.cfg.Cost.Slowdown,
		Running:   m.running,
		Cycles:    m.cycles,
	}
	if at == policy.Sync {
		p.Wait, p.WillBlock = m.cfg.expect(t, arg), true
	} else {
		p.Request = arg
	}
	m.learned.tell(p)
	p.Cost = m.cfg.Told.cost(p.Cost)
	d := m.policy.Decide(*p)
	m.setWake(d.Wake)
	m.log.decide(time.Duration(t), p, d)
	return d
}

// expect is the wait that a policy is told of, for a wait of w ns at time t.
func (cfg *Config) expect(t, w int64) time.Duration {
	if cfg.WaitNoise == 0 {
		return time.Duration(w)
	}
	r := rand.New(rand.NewPCG(cfg.Seed, uint64(t)))
	return time.Duration(float64(w) * max(0, 1+cfg.WaitNoise*(2*r.Float64()-1)))
}

// obey carries out a decision at a point where the program waits w ns anyway.
func (m *base) obey(d policy.Decision, t, w int64, at *totals) {
	switch {
	case d.Action == policy.Skip:
	case m.running && d.Action == policy.Block:
		m.await(t, w, at)
	case m.running: // one cycle at a time
	case d.Action == policy.Block:
		m.block(t, w, at)
	default:
		m.overlap(t, at)
	}
}

// await holds the program, which waits w ns anyway, until the cycle under way has ended.
func (m *base) await(t, w int64, at *totals) {
	m.cycle.held = max(0, m.cycle.end-t-m.shift-w)
	m.hold(t, m.cycle.held, at)
	m.settle(at)
}

func (m *base) block(t, w int64, at *totals) {
	g := m.cost(at, m.share)
	start := t + m.shift
	m.res.Collections++
	m.hold(t, g-w, at)
	m.free(policy.Cycle{Start: time.Duration(start), Duration: time.Duration(g), Exposed: time.Duration(max(0, g-w)), Action: policy.Block}, at, at)
}

func (m *base) climb(t int64, at *totals) {
	g := m.cost(at, 1)
	l := int64(m.cfg.Ladder.Of(time.Duration(g)))
	start := t + m.shift
	m.res.RefusalCollections++
	m.hold(t, l, at)
	m.free(policy.Cycle{Start: time.Duration(start), Duration: time.Duration(g), Exposed: time.Duration(l), Trigger: policy.TriggerRefusal, Action: policy.Block}, at, at)
}

func (m *base) overlap(t int64, at *totals) {
	g := m.cost(at, m.share)
	m.res.Collections++
	m.running = true
	c := &m.cycle
	c.at, c.start, c.end = *at, t+m.shift, t+m.shift+g
	c.t, c.waited, c.rest, c.held = t, at.wait, 0, 0
	m.deadline = t + g
	if m.cfg.Cost.Slowdown > 0 {
		m.deadline = t // the end in trace time depends on the waits in between
	}
}

// cost is what a cycle started now takes, in ns; it adds it to the busy time.
// Share is its cost as a share of a full cycle's.
func (m *base) cost(at *totals, share float64) int64 {
	g := time.Duration(share * float64(m.cfg.Cost.Of(at.objects()-m.count, int64(at.drops)-m.count)))
	m.res.GCBusy += g
	return int64(g)
}

// advance brings the run to trace time t: it slows the program beside a
// cycle, and settles the cycle once it has ended.
func (m *base) advance(t int64, at *totals) {
	if !m.running {
		return
	}
	c := &m.cycle
	if s := m.cfg.Cost.Slowdown; s > 0 {
		wait := min(at.wait-c.waited, t-c.t) // which is not slowed, and comes first: a wait is looked at
		beside := float64(max(0, c.end-c.t-m.shift-wait))
		lost := c.rest + s*min(float64(t-c.t-wait), beside/(1+s))
		c.t, c.waited, c.rest = t, at.wait, lost-math.Floor(lost)
		m.delay(int64(lost), at)
		m.res.Slowed += time.Duration(lost)
		m.log.slow(t, time.Duration(lost))
	}
	if t+m.shift >= c.end {
		m.settle(at)
	}
}

func (m *base) settle(now *totals) {
	c := &m.cycle
	m.running, m.deadline = false, never
	m.free(policy.Cycle{Start: time.Duration(c.start), Duration: time.Duration(c.end - c.start), Exposed: time.Duration(c.held), Action: policy.Overlap}, &c.at, now)
}

// free gives back what was dropped before the cycle started and tells the policy.
func (m *base) free(c policy.Cycle, started, now *totals) {
	c.Freed = started.dropped - m.freed
	m.yielded = int64(started.drops) - m.count
	m.area.free(c.Freed, int64(c.Start), int64(freedAt(c)))
	m.freed, m.count = started.dropped, int64(started.drops)
	m.last, m.liveAfter = *now, now.net-m.freed
	m.cycles++
	c.LiveAfter, c.Limit = m.liveAfter, m.cfg.Told.limit(m.cfg.Limit)
	c.Wanted, m.wanted = m.wanted, 0
	if m.learned != nil {
		m.learned.learn(c.Duration, 0, c.Duration, now.objects()-m.count, m.yielded)
	}
	if m.log != nil {
		m.log.Cycles = append(m.log.Cycles, Collected{Cycle: c, seq: now.seq()})
	}
	if m.policy != nil {
		m.policy.Observe(c)
		m.setWake(0)
	}
}

// freedAt returns when a cycle's bytes became free: at its end, or, for a caller
// who was held, at the end of the pause.
func freedAt(c policy.Cycle) time.Duration {
	if c.Action == policy.Overlap {
		return c.Start + c.Duration
	}
	return c.Start + c.Exposed
}

// hold keeps the program for e ns, if that is more than 0.
func (m *base) hold(t, e int64, at *totals) {
	if e <= 0 {
		return
	}
	if m.log != nil {
		m.log.Pauses = append(m.log.Pauses, Pause{At: time.Duration(t + m.shift), Trace: time.Duration(t), Length: time.Duration(e), seq: at.seq()})
	}
	m.res.ExposedPause += time.Duration(e)
	m.res.MaxPause = max(m.res.MaxPause, time.Duration(e))
	m.delay(e, at)
}

func (m *base) delay(e int64, at *totals) {
	if e <= 0 {
		return
	}
	m.shift += e
	m.area.live += float64(at.net) * float64(e)
	m.area.garbage += float64(at.dropped) * float64(e)
}

// finish returns the metrics. The first event has no past: a trace whose span
// is 0 has means of 0.
func (m *base) finish(w *Workload) Result {
	r := m.res
	r.PeakLive = m.peak
	r.Elapsed = r.Span + time.Duration(m.shift)
	if elapsed := float64(r.Elapsed); elapsed > 0 {
		absent := m.area.absent(elapsed)
		r.MeanLive = (w.netArea + m.area.live - absent) / elapsed
		r.MeanGarbage = (w.deadArea + m.area.garbage - absent) / elapsed
	}
	return r
}
