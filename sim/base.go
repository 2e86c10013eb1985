package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
)

const never = math.MaxInt64

// A base is the state of one run in the base world. Its methods take the trace time of an event and
// the totals before it.
type base struct {
	governor *governor.Governor
	memory   governor.Memory
	run      governor.Run // the cycle under way
	cfg      Config

	share     float64 // cost of the policy's cycles as a share of a full one's: see cudajl
	scheduled bool    // the cycles are those of a schedule, and no policy is asked

	shift int64 // ns by which the program has been delayed
	freed int64 // bytes that cycles have freed
	bar   int64 // an allocation matters once live + request reaches this: it wakes the policy, or is refused
	peak  int64 // most live bytes so far

	deadline int64 // trace time from which the overlapped cycle may have ended; never without one
	cycle    struct {
		at   totals
		end  int64 // virtual
		held int64 // ns for which it has held the program

		// Where cycles slow the program:
		t      int64   // trace time of the last step
		waited int64   // sum of the waits before it
		rest   float64 // of a ns that it has lost
	}

	area area
	res  Result
}

// An area is the change that a run makes to the integrals of live and garbage over time. Pauses add
// to them, and freed bytes subtract from the moment at which they were freed.
type area struct {
	live, garbage float64 // byte ns added by pauses
	freed, moment float64 // sum of freed bytes, and of freed bytes x the time at which they were freed
	late          []yield // of the newest cycle and those that ended after its begin: they may outlast the trace
}

type yield struct{ bytes, end float64 } // of a cycle

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

// absent is the integral of the bytes that cycles had freed, up to elapsed.
func (a *area) absent(elapsed float64) float64 {
	sum := a.freed*elapsed - a.moment
	for _, y := range a.late {
		sum += y.bytes * max(0, elapsed-y.end)
	}
	return sum
}

func newBase(w *Workload, p policy.Policy, cfg Config) *base {
	m := &base{cfg: cfg, deadline: never, area: area{late: make([]yield, 0, 4)}}
	m.res = Result{Trace: w.Name, LimitBytes: cfg.Limit, Span: w.Span, Cycle: cfg.Cost.Base}
	m.res.Ladder = cfg.Ladder.Of(m.res.Cycle)
	m.res.LimitFactor = float64(cfg.Limit) / float64(max(1, w.PeakReachable))
	m.share = 1
	if y, ok := p.(interface{ CycleShare() float64 }); ok && y.CycleShare() > 0 {
		m.share = y.CycleShare()
	}
	if m.scheduled = p == nil; m.scheduled {
		p = policy.Spec{}.New()
	} else {
		m.res.Policy = p.String()
	}
	m.governor = governor.New(uncapped, p)
	m.memory.Space, m.memory.Limit = w.Space, cfg.Told.limit(cfg.Limit)
	m.governor.Add(&m.memory)
	m.setWake(0)
	return m
}

// uncapped are the caps of a world without any: the policy's answer is carried out.
var uncapped = governor.Caps{Cycles: 1}

func (m *base) setWake(wake int64) {
	if wake > largest { // above every sum of bytes
		wake = never
	}
	m.memory.Wake, m.bar = wake, wake
	if m.cfg.Limit > 0 {
		m.bar = min(wake, m.cfg.Limit+1)
	}
}

func (m *base) alloc(t, z int64, at *totals) {
	m.advance(t, at)
	if at.net-m.freed+z >= m.memory.Wake {
		m.look(at)
		m.governor.Allocate(time.Duration(t+m.shift), &m.memory, z)
		m.obey(m.answer(t), t, 0, at)
	}
	m.admit(t, z, at)
}

func (m *base) sync(t, w int64, at *totals) {
	m.advance(t, at)
	m.look(at)
	m.governor.Sync(time.Duration(t+m.shift), m.cfg.expect(t, w))
	m.obey(m.answer(t), t, w, at)
}

// look takes the readings that the governor needs, of memory and costs.
func (m *base) look(at *totals) {
	m.read(at)
	c := &m.governor.Costs
	c.Cost, c.Slowdown = m.length(m.share), m.cfg.Cost.Slowdown
	c.Cost = m.cfg.Told.cost(c.Cost)
}

func (m *base) read(at *totals) {
	live := at.net - m.freed
	m.memory.Live, m.memory.Reserved, m.memory.Allocated = live, live, at.gross
}

// answer returns the governor's answer at a trace time.
func (m *base) answer(t int64) policy.Action {
	m.setWake(m.memory.Wake)
	m.cfg.Log.decide(time.Duration(t), &m.governor.Asked, m.governor.Answer)
	return m.governor.Answer.Action
}

// admit hands out z bytes, by way of the ladder if they do not fit.
func (m *base) admit(t, z int64, at *totals) {
	if !m.fits(z, at) {
		m.refuse(z, at)
		if m.governor.Running {
			m.await(t, 0, at)
		}
		if !m.fits(z, at) {
			m.refuse(z, at)
			m.climb(t, at)
			if !m.fits(z, at) {
				m.res.FailedAllocs++
			}
		}
	}
	m.peak = max(m.peak, at.net-m.freed+z)
}

func (m *base) refuse(z int64, at *totals) {
	m.read(at)
	m.governor.Refuse(0, &m.memory, z)
}

func (m *base) fits(z int64, at *totals) bool {
	return m.cfg.Limit <= 0 || at.net-m.freed+z <= m.cfg.Limit
}

// expect is the wait that a policy expects before one of w ns at time t.
func (cfg *Config) expect(t, w int64) time.Duration {
	if cfg.WaitNoise == 0 {
		return time.Duration(w)
	}
	r := rand.New(rand.NewPCG(cfg.Seed, uint64(t)))
	return time.Duration(float64(w) * max(0, 1+cfg.WaitNoise*(2*r.Float64()-1)))
}

// obey carries out an answer at a point where the program waits w ns anyway.
func (m *base) obey(a policy.Action, t, w int64, at *totals) {
	switch running := m.governor.Running; {
	case a == policy.Skip:
	case running && a == policy.Block:
		m.await(t, w, at)
	case running: // one cycle at a time
	case a == policy.Block:
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
	g := m.cost(m.share)
	m.res.Collections++
	m.begin(t, policy.TriggerPolicy, policy.Block)
	m.hold(t, g-w, at)
	m.free(time.Duration(g), time.Duration(max(0, g-w)), at, at)
}

func (m *base) climb(t int64, at *totals) {
	g := m.cost(1)
	l := int64(m.cfg.Ladder.Of(time.Duration(g)))
	m.res.RefusalCollections++
	m.begin(t, policy.TriggerRefusal, policy.Block)
	m.hold(t, l, at)
	m.free(time.Duration(g), time.Duration(l), at, at)
}

func (m *base) overlap(t int64, at *totals) {
	g := m.cost(m.share)
	m.res.Collections++
	m.begin(t, policy.TriggerPolicy, policy.Overlap)
	c := &m.cycle
	c.at, c.end = *at, t+m.shift+g
	c.t, c.waited, c.rest, c.held = t, at.wait, 0, 0
	m.deadline = t + g
	if m.cfg.Cost.Slowdown > 0 {
		m.deadline = t // the end in trace time depends on the waits in between
	}
}

func (m *base) begin(t int64, trigger policy.Trigger, action policy.Action) {
	m.run = m.governor.Began(time.Duration(t+m.shift), governor.Cause{Trigger: trigger, Action: action, Memory: &m.memory})
}

// length returns the length of a cycle that costs a share of a full one.
func (m *base) length(share float64) time.Duration {
	return time.Duration(share * float64(m.cfg.Cost.Base))
}

// cost returns the length in ns of such a cycle, and adds it to the busy time.
func (m *base) cost(share float64) int64 {
	g := m.length(share)
	m.res.GCBusy += g
	return int64(g)
}

// advance brings the run to trace time t: it slows the program beside a cycle, and settles the
// cycle once it has ended.
func (m *base) advance(t int64, at *totals) {
	if !m.governor.Running {
		return
	}
	c := &m.cycle
	if s := m.cfg.Cost.Slowdown; s > 0 {
		wait := min(at.wait-c.waited, t-c.t) // is not slowed, and comes first
		beside := float64(max(0, c.end-c.t-m.shift-wait))
		lost := c.rest + s*min(float64(t-c.t-wait), beside/(1+s))
		c.t, c.waited, c.rest = t, at.wait, lost-math.Floor(lost)
		m.delay(int64(lost), at)
		m.res.Slowed += time.Duration(lost)
		m.cfg.Log.slow(t, time.Duration(lost))
	}
	if t+m.shift >= c.end {
		m.settle(at)
	}
}

func (m *base) settle(now *totals) {
	c := &m.cycle
	m.deadline = never
	m.free(time.Duration(c.end)-m.run.Start, time.Duration(c.held), &c.at, now)
}

// free gives back the garbage of the cycle's start, and reports the cycle.
func (m *base) free(took, exposed time.Duration, started, now *totals) {
	m.memory.Freed = started.dropped - m.freed
	m.freed = started.dropped
	m.read(now)
	m.governor.Cycles++
	m.run.Duration, m.run.Exposed = took, exposed
	c := m.governor.Settled(m.run.Start+took, &m.run)
	end := c.Start + c.Duration // when its bytes became free
	if c.Action != policy.Overlap {
		end = c.Start + c.Exposed // at the end of the pause of a caller that was held
	}
	m.area.free(c.Freed, int64(c.Start), int64(end))
	if log := m.cfg.Log; log != nil {
		log.Cycles = append(log.Cycles, Collected{Cycle: c, seq: now.seq})
	}
	if !m.scheduled {
		m.setWake(0)
	}
}

// hold keeps the program for e ns, if that is more than 0.
func (m *base) hold(t, e int64, at *totals) {
	if e <= 0 {
		return
	}
	if log := m.cfg.Log; log != nil {
		log.Pauses = append(log.Pauses, Pause{At: time.Duration(t + m.shift), Trace: time.Duration(t), Length: time.Duration(e), seq: at.seq})
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

// finish returns the metrics. A trace whose span is 0 has means of 0.
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
