package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/eagergc/eagergc/gc"
)

// OptimumOverlap returns the best schedule it knows of overlapped cycles, held
// where that pays, and a proven lower bound on the exposed pause of every
// schedule, overlapped and blocking cycles mixed at will.
//
// Write t(i) for the time of point i, and T(k) for the first allocation that
// does not fit on top of what a cycle started at k keeps. A chain of cycles
// ..., k, i, j, ... never refuses if each starts by the T of the one before it.
// Cycle i holds the program where it is still under way at T(k), or where j
// starts before it has ended:
//
//	exposed(i) = max(0, t(i) + g - min(t(T(k)), t(j)))
//
// For the bound, the term of j is dropped. What is left depends on k and i
// alone, so that a shortest path over the points is exact for it. No schedule
// is below it, blocking cycles and holds behind a wait included, once t(T) is
// read as the latest end of any wait begun by then. For the schedule, the sum
// of both terms stands for their maximum, which again depends on neighbours
// alone; this path, the bound's own and [OptimumBlocking] are run, and the
// least is returned. Where its exposed pause equals the bound, it is the optimum.
//
// Each pass is O(points): T grows with k, so the candidates for a node fall
// into four ranges with one formula each, and each range's least is a sliding
// minimum. Among equals the path with the fewest cycles is taken.
//
// The bound supposes a ladder no shorter than a cycle. Where cycles differ in
// cost it prices all like the cheapest; where they slow the program, like the
// part of it that the program can hide.
func OptimumOverlap(w *Workload, cfg Config) (s Schedule, bound time.Duration, err error) {
	if cfg.Limit <= 0 {
		return Schedule{}, 0, nil
	}
	far, err := w.reaches(cfg.Limit)
	if err != nil {
		return Schedule{}, 0, err
	}
	cfg.Log = nil
	g := leastCycle(w, &cfg.Cost)
	low := newChain(w, far, int64(float64(g)/(1+cfg.Cost.Slowdown)))
	low.relax(w)
	bound = time.Duration(low.solve().exposed)
	high := newChain(w, far, g)
	high.solve()
	s, err = OptimumBlocking(w, cfg.Limit, cfg.Cost)
	if err != nil {
		return Schedule{}, 0, err
	}
	s.Exposed = RunSchedule(w, "", s, cfg).ExposedPause
	for _, c := range []*chain{low, high} {
		t := Schedule{steps: c.steps()}
		t.Exposed = RunSchedule(w, "", t, cfg).ExposedPause
		if t.Exposed < s.Exposed || t.Exposed == s.Exposed && len(t.steps) < len(s.steps) {
			s = t
		}
	}
	return s, bound, nil
}

// leastCycle is the least that any cycle of w can cost, in ns.
func leastCycle(w *Workload, cost *Cost) int64 {
	if *cost == Fixed(cost.Base) {
		return int64(cost.Base)
	}
	least := int64(math.MaxInt64)
	for i := range w.points {
		p := &w.points[i]
		least = min(least, int64(cost.Of(p.objects()-int64(p.drops), 0)))
	}
	return least
}

// reaches returns T for every node: the first point that does not fit on top
// of what the node's cycle keeps, len(points) if all do. Node 0 is the start,
// node i+1 a cycle at point i.
func (w *Workload) reaches(limit int64) ([]int32, error) {
	n := len(w.points)
	far := make([]int32, n+1)
	r := newReach(w, limit)
	for passed := 0; passed <= n; passed++ {
		was := r.oldest
		r.advance(passed)
		for k := was; k < r.oldest; k++ {
			far[k] = int32(passed - 1)
		}
		if r.oldest > passed {
			return nil, fmt.Errorf("%w: %d bytes, at point %d of %s (peak reachable %d)", ErrNoSchedule, limit, passed-1, w.Name, w.PeakReachable)
		}
	}
	for k := r.oldest; k <= n; k++ {
		far[k] = int32(n)
	}
	return far, nil
}

// A chain is a shortest path over the nodes, in which the cycle of a node is
// priced by the node before it.
type chain struct {
	far    []int32 // T of each node
	time   []int64 // t of each node
	wall   []int64 // t(T) of each node
	g      int64
	hurry  bool // add the term of the successor
	best   []price
	prev   []int32
	target price
	last   int32
}

const farOff = math.MaxInt64 / 4 // later than any event, and safe to add to

func newChain(w *Workload, far []int32, g int64) *chain {
	n := len(w.points)
	c := &chain{far: far, g: g, hurry: true, time: make([]int64, n+1), wall: make([]int64, n+1), best: make([]price, n+1), prev: make([]int32, n+1)}
	c.time[0] = -farOff // the start hurries nothing
	for i := range w.points {
		c.time[i+1] = w.points[i].time
	}
	for k, T := range far {
		c.wall[k] = farOff
		if int(T) < n {
			c.wall[k] = w.points[T].time
		}
	}
	return c
}

// relax makes the chain a lower bound: successors hurry nothing, and a wall is
// as late as the waits before it last.
func (c *chain) relax(w *Workload) {
	c.hurry = false
	end, i := int64(0), 0
	for k, T := range c.far {
		for ; i < min(int(T), len(w.points)); i++ {
			if p := &w.points[i]; p.sync {
				end = max(end, p.time+p.arg)
			}
		}
		c.wall[k] = max(c.wall[k], end)
	}
}

// solve finds the cheapest path to a node from which everything fits.
func (c *chain) solve() price {
	n := len(c.far) - 1
	// The candidates k of a node, oldest first, by whether t(i)+g is past the
	// wall of k (late) and whether k is still under way at t(i) (hurried).
	var late, free, hurriedLate, hurried sliding
	late.key = func(k int) int64 { return c.best[k].exposed - c.wall[k] }
	free.key = func(k int) int64 { return c.best[k].exposed }
	hurriedLate.key = func(k int) int64 { return c.best[k].exposed - c.wall[k] + c.time[k] }
	hurried.key = func(k int) int64 { return c.best[k].exposed + c.time[k] }
	oldest, past, done := 0, 0, 0 // first candidate; first with its wall at t+g or later; first still under way
	for node := 1; node <= n; node++ {
		t := c.time[node]
		for int(c.far[oldest]) < node-1 {
			oldest++
		}
		for past < node && c.wall[past] < t+c.g {
			past++
		}
		done = max(done, 1)
		for c.hurry && done < node && c.time[done]+c.g <= t {
			done++
		}
		if !c.hurry {
			done = node
		}
		best, from := price{exposed: math.MaxInt64}, -1
		pick := func(s *sliding, lo, hi int, add int64) {
			if k, ok := s.least(lo, hi, c.best); ok {
				if p := (price{s.key(k) + add, c.best[k].cycles}); p.less(best) {
					best, from = p, k
				}
			}
		}
		pick(&late, oldest, min(past, done), t+c.g)
		pick(&free, max(oldest, past), done, 0)
		pick(&hurriedLate, max(oldest, done), past, t+c.g+c.g-t)
		pick(&hurried, max(oldest, done, past), node, c.g-t)
		best.cycles++
		c.best[node], c.prev[node] = best, int32(from)
	}
	c.target = price{exposed: math.MaxInt64}
	for k := 0; k <= n; k++ {
		if int(c.far[k]) == n && c.best[k].less(c.target) {
			c.target, c.last = c.best[k], int32(k)
		}
	}
	return c.target
}

// steps returns the path that solve found.
func (c *chain) steps() []step {
	var s []step
	for node := c.last; node > 0; node = c.prev[node] {
		s = append(s, step{int(node) - 1, gc.Overlap})
	}
	reverse(s)
	return s
}

// A sliding minimum over a range of nodes whose bounds never go back.
type sliding struct {
	key   func(node int) int64
	queue []int32 // keys increasing
	head  int
	next  int // first node that has not entered
}

// least returns the node of [lo, hi) with the least key, of those the one with
// the fewest cycles.
func (s *sliding) least(lo, hi int, best []price) (int, bool) {
	for s.next = max(s.next, lo); s.next < hi; s.next++ {
		p := price{s.key(s.next), best[s.next].cycles}
		for len(s.queue) > s.head {
			q := int(s.queue[len(s.queue)-1])
			if !p.less(price{s.key(q), best[q].cycles}) {
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
