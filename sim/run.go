package sim

import (
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// Config is the world of a run. The zero value has no limit and free cycles.
type Config struct {
	Limit  int64  // bytes; 0 = none
	Cost   Cost   // of a cycle
	Ladder Ladder // length of the refusal ladder
	// WaitNoise is the largest relative error of expected waits. Seed and the time of a wait give its
	// error, which is distributed evenly.
	WaitNoise float64
	Seed      uint64
	Told      Told

	// Machine replaces the base world's Cost and Ladder by those of a machine that was measured;
	// nil: the base world. Seed draws its noise.
	Machine *Machine
	Memory  Memory // fresh, of a run with a Machine; nil: everything up to the limit fits

	Log *Log // collects cycles, pauses and decisions; nil = off
}

// Run replays w under p, which must be fresh, and returns the metrics. It steps from decision to
// decision. It is deterministic: the same workload, policy and config give the same result. Many
// runs may share w at one time.
func Run(w *Workload, p policy.Policy, cfg Config) Result {
	if cfg.Machine != nil {
		return runMeasured(w, p, cfg)
	}
	return newBase(w, p, cfg).walk(w, nil)
}

// walk steps from decision to decision, of the policy or of a schedule.
func (m *base) walk(w *Workload, steps *[]step) Result {
	for i := 0; ; i++ {
		j := m.next(w, i)
		if steps != nil && len(*steps) > 0 {
			j = min(j, (*steps)[0].point)
		}
		m.peak = max(m.peak, w.maxTop(i, j)-m.freed)
		if j == len(w.points) {
			return m.finish(w)
		}
		i = j
		switch q := &w.points[i]; {
		case steps != nil:
			m.follow(q, i, steps)
		case q.sync:
			m.sync(q.time, q.arg, &q.totals)
		default:
			m.alloc(q.time, q.arg, &q.totals)
		}
	}
}

// next returns the first point from i on that is a sync, an allocation that wakes the policy or
// does not fit, or at which the cycle under way may have ended.
func (m *base) next(w *Workload, i int) int {
	if i == len(w.points) {
		return i
	}
	if q := &w.points[i]; q.sync || q.time >= m.deadline || q.top()-m.freed >= m.bar {
		return i
	}
	j := int(w.nextSync[i])
	if m.bar != never { // first, since it is mostly the nearer one
		j = w.firstTop(i, j, m.bar+m.freed)
	}
	if m.deadline != never {
		j = w.firstTime(i, j, m.deadline)
	}
	return j
}

// Decided is one question and its answer.
type Decided struct {
	Trace time.Duration // the point's time on the recording's clock; Now is the run's
	policy.Point
	policy.Decision
}

// Collected is one cycle.
type Collected struct {
	policy.Cycle
	seq int64 // totals.seq when it settled
}

// A Pause is a time for which the program was held.
type Pause struct {
	At     time.Duration // virtual time of its start
	Trace  time.Duration // the same on the recording's clock
	Length time.Duration
	seq    int64 // totals.seq
}
