package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// Optima lists the optima of [Optimum]: optimum-blocking has the least exposed pause that
// blocking cycles can have, optimum-overlap the least known of all schedules, and
// optimum-objective the least known delay + CPUPrice x collector time.
func Optima() []string { return []string{"optimum-blocking", "optimum-overlap", "optimum-objective"} }

var errBaseOnly = errors.New("sim: an optimum is known in the base world alone, without a machine")

// Optimum replays w under the named one of [Optima], which knows the whole workload, and returns
// a proven lower bound of its objective, too. It fails with [ErrNoSchedule] where the limit is too small,
// with [ErrTooLong], and with a Machine; the result then has the settings of the run alone.
func Optimum(name string, w *Workload, cfg Config) (r Result, bound time.Duration, err error) {
	var s schedule
	switch {
	case cfg.Machine != nil:
		return Result{}, 0, errBaseOnly
	case name == "optimum-blocking":
		s, err = optimumBlocking(w, cfg.Limit, cfg.Cost)
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

// ErrNoSchedule says that not even a cycle at every point keeps a workload
// under its limit: the limit is below the peak of the reachable bytes.
var ErrNoSchedule = errors.New("sim: no schedule fits the limit")

// ErrTooLong says that a workload has more points than an optimum is searched for:
// the search needs about 500 bytes of memory for each point.
var ErrTooLong = errors.New("sim: too long for an optimum")

// mostPoints is the most that an optimum is searched for. Tests set it.
var mostPoints = 1 << 22

func (w *Workload) tooLong() error {
	if n := len(w.points); n > mostPoints {
		return fmt.Errorf("%w: %d allocations and waits, at most %d", ErrTooLong, n, mostPoints)
	}
	return nil
}

// A schedule is a list of cycles that keeps a workload under a limit without
// a refusal, and the exposed pause that it was computed to have.
type schedule struct {
	Exposed time.Duration
	steps   []step
}

// A step is a cycle just before a point passes.
type step struct {
	point  int
	action policy.Action
}

// optimumBlocking returns the schedule of blocking cycles that has the least
// total exposed pause of all that never refuse; of those, one with the fewest
// cycles. A cycle costs g before an allocation and max(0, g - w) at a sync
// that waits w.
//
// It is a shortest path over the points. After a cycle at i the next may be at j
// as long as everything allocated between them fits on top of what the cycle at
// i kept. The farthest j grows with i, so that one pass with a queue of candidates
// of increasing cost finds the path, in O(points) time and memory.
//
// Where the cost of a cycle depends on the objects (see [Cost]), every cycle is
// counted at the least that it could cost there: with only the reachable objects
// tracked, and none freed. Exposed is then a lower bound; a run of the schedule
// shows its real cost.
func optimumBlocking(w *Workload, limit int64, cost Cost) (schedule, error) {
	if limit <= 0 {
		return schedule{}, nil
	}
	if err := w.tooLong(); err != nil {
		return schedule{}, err
	}
	n := len(w.points)
	// Node 0 is the start, node i+1 a cycle at point i, node n+1 the end.
	best := make([]pathCost, n+2)
	prev := make([]int32, n+2)
	queue := make([]int32, 0, n+2) // open nodes, oldest first, prices increasing
	head := 0
	far := reach{w: w, limit: limit}
	for node := 1; node <= n+1; node++ {
		for len(queue) > head && best[node-1].less(best[queue[len(queue)-1]]) {
			queue = queue[:len(queue)-1]
		}
		queue = append(queue, int32(node-1))
		far.advance(node - 1)
		if far.oldest == node {
			return schedule{}, fmt.Errorf("%w: %d bytes, at point %d of %s (peak reachable %d)", ErrNoSchedule, limit, node-2, w.Name, w.PeakReachable)
		}
		for int(queue[head]) < far.oldest {
			head++
		}
		prev[node] = queue[head]
		best[node] = best[queue[head]]
		if node <= n {
			best[node].add(leastCost(&w.points[node-1], &cost))
		}
	}
	s := schedule{Exposed: time.Duration(best[n+1].exposed)}
	for node := prev[n+1]; node > 0; node = prev[node] {
		s.steps = append(s.steps, step{int(node) - 1, policy.Block})
	}
	slices.Reverse(s.steps)
	return s, nil
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

// leastCost is the exposed pause of the cheapest blocking cycle at p.
func leastCost(p *point, cost *Cost) int64 {
	g := int64(cost.Of(p.objects()-int64(p.drops), 0))
	if p.sync {
		return max(0, g-p.arg)
	}
	return g
}

// A reach knows which nodes a path can come from: oldest is the first node
// from whose cycle (or the start) everything allocated so far has fitted.
type reach struct {
	w      *Workload
	limit  int64
	oldest int
	tops   []int32 // points whose tops decrease: the windowed maximum is tops[0]
	head   int
}

// advance lets the first passed points pass: the next node comes after them.
func (r *reach) advance(passed int) {
	if passed > 0 {
		p := passed - 1
		for len(r.tops) > r.head && r.w.points[r.tops[len(r.tops)-1]].top() <= r.w.points[p].top() {
			r.tops = r.tops[:len(r.tops)-1]
		}
		r.tops = append(r.tops, int32(p))
	}
	for r.head < len(r.tops) && r.w.points[r.tops[r.head]].top()-r.kept() > r.limit {
		r.oldest++
		for r.head < len(r.tops) && int(r.tops[r.head]) < r.oldest-1 {
			r.head++
		}
	}
}

// kept is what a cycle at the oldest node has freed by its end.
func (r *reach) kept() int64 {
	if r.oldest == 0 {
		return 0
	}
	return r.w.points[r.oldest-1].dropped
}

// runSchedule runs w under a schedule, so that an optimum has all the metrics
// of a policy. The name goes into the result.
func runSchedule(w *Workload, name string, s schedule, cfg Config) Result {
	m := newBase(w, nil, cfg)
	m.res.Policy = name
	m.setWake(math.MaxInt64)
	steps := s.steps
	for i := 0; ; i++ {
		j := m.next(w, i)
		if len(steps) > 0 {
			j = min(j, steps[0].point)
		}
		m.peak = max(m.peak, w.maxTop(i, j)-m.freed)
		if j == len(w.points) {
			return m.finish(w)
		}
		i = j
		m.follow(&w.points[i], i, &steps)
	}
}

// follow passes one point, with the cycle that the schedule has for it.
func (m *base) follow(q *point, i int, steps *[]step) {
	m.advance(q.time, &q.totals)
	wait := int64(0)
	if q.sync {
		wait = q.arg
	}
	if s := *steps; len(s) > 0 && s[0].point == i {
		if m.running { // one at a time: the step hurries the cycle before it
			m.obey(policy.Decision{Action: policy.Block}, q.time, wait, &q.totals)
		}
		m.obey(policy.Decision{Action: s[0].action}, q.time, wait, &q.totals)
		*steps = s[1:]
	}
	if !q.sync {
		m.admit(q.time, q.arg, &q.totals)
	}
}
