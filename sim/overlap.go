package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// optimumOverlap returns the best known schedule of overlapped cycles, and a lower bound on the
// exposed pause of every schedule of overlapped and blocking cycles. The schedule may hold the
// program until a cycle has ended and start the next cycle at the same point, which no policy can.
//
// Write t(i) for the time of point i. T(k) is the first allocation that does not fit beside the
// bytes that a cycle started at k keeps. A chain of cycles ..., k, i, j, ... never refuses if each
// starts by the T of the one before it. Cycle i holds the program if it still runs at T(k), or if j
// starts before it has ended:
//
//	exposed(i) = max(0, t(i) + g - min(t(T(k)), t(j)))
//
// The bound leaves out the term of j. The rest depends on k and i alone, so a shortest path over
// the points is exact for it. It counts t(T) as the latest end of any wait that began by then. So
// it holds for blocking cycles, and for cycles hidden by a wait.
//
// The schedule is the best of three: the bound's own path, optimumBlocking, and that of [paths].
// Among equal ones, the fewest cycles win. A schedule that costs as much as the bound is the
// optimum. The bound takes O(points), the schedule O(points log points).
//
// The bound holds if the ladder is no shorter than a cycle. If cycles slow the program, it counts
// only the part of a cycle that the program can hide.
//
// With a share above 0, it minimizes delay + share x collector time instead. The delay is the
// exposed pause and the slowdown beside cycles, which the bound leaves out.
func optimumOverlap(w *Workload, cfg Config, share float64) (best schedule, bound time.Duration, err error) {
	if cfg.Limit <= 0 {
		return schedule{}, 0, nil
	}
	far, err := w.reaches(cfg.Limit)
	if err != nil {
		return schedule{}, 0, err
	}
	cfg.Log = nil
	g := int64(cfg.Cost.Base)
	charge := int64(share * float64(g))
	low := newChain(w, far, int64(float64(g)/(1+cfg.Cost.Slowdown)), func(*point) int64 { return charge })
	bound = time.Duration(low.solve())
	least := time.Duration(math.MaxInt64)
	try := func(steps []step) {
		r := runSchedule(w, "", schedule{steps: steps}, cfg)
		cost := r.ExposedPause
		if share > 0 {
			cost = r.Delay() + time.Duration(share*float64(r.GCBusy))
		}
		if cost < least || cost == least && len(steps) < len(best.steps) {
			least, best = cost, schedule{Exposed: r.ExposedPause, steps: steps}
		}
	}
	try(low.steps(policy.Overlap))
	if least == bound {
		return best, bound, nil
	}
	blocking, err := optimumBlocking(w, cfg.Limit, cfg.Cost.Base)
	if err != nil {
		return schedule{}, 0, err
	}
	try(blocking.steps)
	if slow := cfg.Cost.Slowdown; share > 0 {
		charge += int64(slow / (1 + slow) * float64(g))
	}
	try(newPaths(w, far, g, charge).solve())
	return best, bound, nil
}

// reaches returns T for every node: the first point that does not fit beside the bytes that the
// node's cycle keeps, or len(points). Node 0 is the start, node i+1 a cycle at point i. A later
// cycle frees no less, so T only grows.
func (w *Workload) reaches(limit int64) ([]int32, error) {
	n, T, freed := len(w.points), 0, int64(0)
	if n > mostPoints {
		return nil, fmt.Errorf("%w: %d allocations and waits, at most %d", ErrTooLong, n, mostPoints)
	}
	far := make([]int32, n+1)
	for node := range far {
		if node > 0 {
			freed = w.points[node-1].dropped // by the cycle
		}
		for T = max(T, node-1); T < n && w.points[T].top()-freed <= limit; {
			T++
		}
		if T == node-1 {
			return nil, fmt.Errorf("%w: %d bytes, at point %d of %s (peak reachable %d)", ErrNoSchedule, limit, T, w.Name, w.PeakReachable)
		}
		far[node] = int32(T)
	}
	return far, nil
}

// fullTimes returns t(T) for every node, far off if there is no T.
func (w *Workload) fullTimes(far []int32) []int64 {
	fullAt := make([]int64, len(far))
	for k, T := range far {
		fullAt[k] = farOff
		if int(T) < len(w.points) {
			fullAt[k] = w.points[T].time
		}
	}
	return fullAt
}

const farOff = math.MaxInt64 / 4 // later than any event, and safe to add to

// A chain is a shortest path over the nodes, for a bound. The price of a node's cycle depends on
// this node and the one before it.
type chain struct {
	w      *Workload
	far    []int32 // T of each node
	fullAt []int64 // t(T) of each node, or the latest end of a wait begun by then
	g      int64
	fee    func(*point) int64 // for each cycle
	best   []pathCost
	prev   []int32
	last   int32
}

func newChain(w *Workload, far []int32, g int64, fee func(*point) int64) *chain {
	c := &chain{w: w, far: far, fullAt: w.fullTimes(far), g: g, fee: fee, best: make([]pathCost, len(far)), prev: make([]int32, len(far))}
	end, i := int64(0), 0
	for k, T := range far {
		for ; i < int(T); i++ {
			if p := &w.points[i]; p.sync {
				end = max(end, p.time+p.arg)
			}
		}
		c.fullAt[k] = max(c.fullAt[k], end)
	}
	return c
}

// solve returns the cost of the cheapest path to a node from which everything fits.
func (c *chain) solve() int64 {
	n := len(c.far) - 1
	// A candidate is late if memory is full before the cycle of the node ends.
	late := sliding{key: func(k int) int64 { return c.best[k].exposed - c.fullAt[k] }}
	free := sliding{key: func(k int) int64 { return c.best[k].exposed }}
	oldest, past := 0, 0 // first candidate; first that is not late
	for node := 1; node <= n; node++ {
		p := &c.w.points[node-1]
		end := p.time + c.g
		for int(c.far[oldest]) < node-1 {
			oldest++
		}
		for past < node && c.fullAt[past] < end {
			past++
		}
		best, from := pathCost{exposed: math.MaxInt64}, -1
		if k, ok := late.least(oldest, past, c.best); ok {
			best, from = pathCost{late.key(k) + end, c.best[k].cycles}, k
		}
		if k, ok := free.least(max(oldest, past), node, c.best); ok && c.best[k].less(best) {
			best, from = c.best[k], k
		}
		best.add(c.fee(p))
		c.best[node], c.prev[node] = best, int32(from)
	}
	target := pathCost{exposed: math.MaxInt64}
	for k := range c.far {
		if int(c.far[k]) == n && c.best[k].less(target) {
			target, c.last = c.best[k], int32(k)
		}
	}
	return target.exposed
}

// steps returns the path that solve found.
func (c *chain) steps(action policy.Action) []step {
	var s []step
	for node := c.last; node > 0; node = c.prev[node] {
		s = append(s, step{int(node) - 1, action})
	}
	slices.Reverse(s)
	return s
}

// A sliding minimum over a range of nodes whose bounds never go back.
type sliding struct {
	key   func(node int) int64
	queue []int32 // keys increasing
	head  int
	next  int // first node that has not entered
}

// least returns the node of [lo, hi) with the least key, and then the fewest cycles.
func (s *sliding) least(lo, hi int, best []pathCost) (int, bool) {
	for s.next = max(s.next, lo); s.next < hi; s.next++ {
		p := pathCost{s.key(s.next), best[s.next].cycles}
		for len(s.queue) > s.head {
			q := int(s.queue[len(s.queue)-1])
			if !p.less(pathCost{s.key(q), best[q].cycles}) {
				break
			}
			s.queue = s.queue[:len(s.queue)-1]
		}
		s.queue = append(s.queue, int32(s.next))
	}
	for len(s.queue) > s.head && int(s.queue[s.head]) < lo {
		s.head++
	}
	if len(s.queue) == s.head || int(s.queue[s.head]) >= hi {
		return 0, false
	}
	return int(s.queue[s.head]), true
}
