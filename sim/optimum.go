package sim

import (
	"errors"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// Optima lists the optima of [Optimum]. optimum-blocking has the least exposed pause of all
// schedules of blocking cycles, and optimum-overlap the least known of all schedules.
// optimum-objective has the least known delay + CPUPrice x collector time.
func Optima() []string { return []string{"optimum-blocking", "optimum-overlap", "optimum-objective"} }

var errBaseOnly = errors.New("sim: an optimum is known in the base world alone, without a machine")

// Optimum replays w under the named one of [Optima], which knows the whole workload, and returns a
// proven lower bound of its objective, too. It fails with [ErrNoSchedule] if the limit is too
// small, with [ErrTooLong], and with a Machine. The result then has only the settings of the run.
//
// Jacek, Chiu, Marlin and Moss ("Assessing the Limits of Program-Specific Garbage Collection
// Performance", PLDI 2016) introduced such optima. They solve a Markov decision process over heap
// states, for collectors that stop the program.
func Optimum(name string, w *Workload, cfg Config) (r Result, bound time.Duration, err error) {
	var s schedule
	switch {
	case cfg.Machine != nil:
		return Result{}, 0, errBaseOnly
	case name == "optimum-blocking":
		s, err = optimumBlocking(w, cfg.Limit, cfg.Cost.Base)
		bound = s.Exposed
	case name == "optimum-overlap":
		s, bound, err = optimumOverlap(w, cfg, 0)
	case name == "optimum-objective":
		s, bound, err = optimumOverlap(w, cfg, CPUPrice)
	default:
		panic("sim: no optimum " + name)
	}
	if err != nil {
		r = newBase(w, nil, cfg).res
		r.Policy = name
		return r, 0, err
	}
	return runSchedule(w, name, s, cfg), bound, nil
}

// ErrNoSchedule says that no schedule keeps a workload under its limit: the limit is below the peak
// of the reachable bytes.
var ErrNoSchedule = errors.New("sim: no schedule fits the limit")

// ErrTooLong says that a workload has more points than an optimum is searched for: the search needs
// about 500 bytes of memory for each point.
var ErrTooLong = errors.New("sim: too long for an optimum")

// mostPoints is the most that an optimum is searched for. Tests set it.
var mostPoints = 1 << 22

// A schedule is a list of cycles that keeps a workload under a limit without a refusal, with its
// computed exposed pause.
type schedule struct {
	Exposed time.Duration
	steps   []step
}

// A step is a cycle just before a point passes.
type step struct {
	point  int
	action policy.Action
}

// optimumBlocking returns the schedule of blocking cycles with the least exposed pause, and then
// the fewest cycles, that never refuses. A cycle costs g before an allocation and max(0, g - w) at
// a sync that waits w. The schedule is a shortest path over the points. After a cycle at i the next
// may be at j if all allocations between them fit beside the bytes that the first one kept.
func optimumBlocking(w *Workload, limit int64, g time.Duration) (schedule, error) {
	if limit <= 0 {
		return schedule{}, nil
	}
	far, err := w.reaches(limit)
	if err != nil {
		return schedule{}, err
	}
	c := newChain(w, far, 0, func(p *point) int64 {
		if p.sync {
			return max(0, int64(g)-p.arg)
		}
		return int64(g)
	})
	return schedule{Exposed: time.Duration(c.solve()), steps: c.steps(policy.Block)}, nil
}

// A pathCost orders paths: by exposed pause, then by number of cycles.
type pathCost struct {
	exposed int64
	cycles  int32
}

func (p pathCost) less(q pathCost) bool {
	return p.exposed < q.exposed || p.exposed == q.exposed && p.cycles < q.cycles
}

func (p *pathCost) add(exposed int64) { p.exposed, p.cycles = p.exposed+exposed, p.cycles+1 }

// runSchedule runs w under a schedule, so that an optimum has all the metrics of a policy. The name
// goes into the result.
func runSchedule(w *Workload, name string, s schedule, cfg Config) Result {
	m := newBase(w, nil, cfg)
	m.res.Policy = name
	m.setWake(never)
	return m.walk(w, &s.steps)
}

// follow passes one point, with the cycle that the schedule has for it.
func (m *base) follow(q *point, i int, steps *[]step) {
	m.advance(q.time, &q.totals)
	wait := int64(0)
	if q.sync {
		wait = q.arg
	}
	if s := *steps; len(s) > 0 && s[0].point == i {
		if m.governor.Running { // one at a time: the step hurries the cycle before it
			m.obey(policy.Block, q.time, wait, &q.totals)
		}
		m.obey(s[0].action, q.time, wait, &q.totals)
		*steps = s[1:]
	}
	if !q.sync {
		m.admit(q.time, q.arg, &q.totals)
	}
}
