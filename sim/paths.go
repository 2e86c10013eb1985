package sim

import (
	"math"
	"slices"

	"github.com/eagergc/eagergc/gc/policy"
)

// A paths looks for a good schedule of overlapped cycles. It keeps two ways to each point, with the
// cost of each and the time at which its cycle ends by itself. A successor that starts earlier pays
// for the rest.
type paths struct {
	w      *Workload
	far    []int32 // T of each node
	fullAt []int64
	g      int64
	fee    int64 // for each cycle
	way    []way // 2 x node, and 2 x node + 1

	// The ways whose cycle has ended, or still runs, at the time of the node. In the full ones, the
	// key has the time at which memory is full, which a cycle started now may reach.
	ended, endedFull     tree // keys cost, cost - fullAt
	running, runningFull tree // keys cost + end, cost + end - fullAt
	ends                 []int32
}

// A way is one way to a node: a path that ends with its cycle.
type way struct {
	pathCost
	end  int64 // trace time at which the cycle ends if nothing hurries it
	prev int32 // the way before it
}

func newPaths(w *Workload, far []int32, g, fee int64) *paths {
	n := 2 * len(far) // ways
	return &paths{
		w: w, far: far, fullAt: w.fullTimes(far), g: g, fee: fee, way: make([]way, n),
		ended: make(tree, 2*n), endedFull: make(tree, 2*n), running: make(tree, 2*n), runningFull: make(tree, 2*n),
	}
}

func (p *paths) solve() []step {
	n := len(p.far) - 1
	for i := range p.way {
		p.way[i].exposed = math.MaxInt64 // no way yet
	}
	p.way[0] = way{end: -1}
	p.arrive(0)
	oldest, past := 0, 0
	for node := 1; node <= n; node++ {
		t := p.w.points[node-1].time
		for int(p.far[oldest]) < node-1 {
			oldest++
		}
		for past < node && p.fullAt[past] < t+p.g {
			past++
		}
		p.finish(t)
		p.reach(node, t, oldest, past)
	}
	last, best := int32(0), pathCost{exposed: math.MaxInt64}
	for k, T := range p.far {
		if int(T) == n {
			for _, i := range []int{2 * k, 2*k + 1} {
				if p.way[i].less(best) {
					last, best = int32(i), p.way[i].pathCost
				}
			}
		}
	}
	var steps []step
	for ; last > 1; last = p.way[last].prev {
		steps = append(steps, step{int(last)/2 - 1, policy.Overlap})
	}
	slices.Reverse(steps)
	return steps
}

// reach finds the two ways to a node at time t. One is the cheapest, and counts the full memory
// that it reaches. The other arrives for the least cost, and is best if its cycle is hurried at
// once.
func (p *paths) reach(node int, t int64, oldest, past int) {
	lo, mid, hi := 2*oldest, 2*max(oldest, past), 2*node
	cheap := p.ended.least(mid, hi)
	cheap = cheap.or(p.running.least(mid, hi), -t)
	cheap = cheap.or(p.endedFull.least(lo, mid), t+p.g)
	cheap = cheap.or(p.runningFull.least(lo, mid), p.g)
	arrival := p.ended.least(lo, hi)
	arrival = arrival.or(p.running.least(lo, hi), -t)
	p.enter(2*node, t, cheap.way())
	if arrival.way() != cheap.way() {
		p.enter(2*node+1, t, arrival.way())
	}
}

// enter puts way i, which comes from way k and starts its cycle at t.
func (p *paths) enter(i int, t int64, k int32) {
	from, fullAt := &p.way[k], p.fullAt[k/2]
	w := way{pathCost: from.pathCost, end: min(t+p.g, fullAt), prev: k}
	w.add(max(0, from.end-t) + t + p.g - w.end + p.fee)
	p.way[i] = w
	p.arrive(i)
}

// arrive makes way i a candidate, its cycle running; ends is a heap by end.
func (p *paths) arrive(i int) {
	w, fullAt := &p.way[i], p.fullAt[i/2]
	p.running.set(i, pathCost{w.exposed + w.end, w.cycles})
	p.runningFull.set(i, pathCost{w.exposed + w.end - fullAt, w.cycles})
	p.ends = append(p.ends, int32(i))
	for c := len(p.ends) - 1; c > 0 && p.sooner(c, (c-1)/2); c = (c - 1) / 2 {
		p.ends[c], p.ends[(c-1)/2] = p.ends[(c-1)/2], p.ends[c]
	}
}

func (p *paths) sooner(a, b int) bool { return p.way[p.ends[a]].end < p.way[p.ends[b]].end }

// finish moves the ways whose cycles have ended by t.
func (p *paths) finish(t int64) {
	for len(p.ends) > 0 && p.way[p.ends[0]].end <= t {
		i := int(p.ends[0])
		last := len(p.ends) - 1
		p.ends[0], p.ends = p.ends[last], p.ends[:last]
		for a := 0; ; {
			c := 2*a + 1
			if c+1 < last && p.sooner(c+1, c) {
				c++
			}
			if c >= last || !p.sooner(c, a) {
				break
			}
			p.ends[a], p.ends[c] = p.ends[c], p.ends[a]
			a = c
		}
		w := &p.way[i]
		p.running.put(i, leaf{})
		p.runningFull.put(i, leaf{})
		p.ended.set(i, w.pathCost)
		p.endedFull.set(i, pathCost{w.exposed - p.fullAt[i/2], w.cycles})
	}
}

// A tree finds the least key in a range of ways: inner nodes, then as many leaves.
type tree []leaf

// A leaf is a way and its key. The zero value has no way.
type leaf struct {
	exposed int64
	cycles  int32
	number  int32 // of the way, from 1 on
}

func (a leaf) way() int32 { return a.number - 1 }

// or returns the better of a and b, with add on b's key.
func (a leaf) or(b leaf, add int64) leaf {
	if b.number == 0 {
		return a
	}
	b.exposed += add
	if a.number == 0 || b.exposed < a.exposed || b.exposed == a.exposed && b.cycles < a.cycles {
		return b
	}
	return a
}

func (t tree) set(i int, key pathCost) { t.put(i, leaf{key.exposed, key.cycles, int32(i) + 1}) }

func (t tree) put(i int, x leaf) {
	i += len(t) / 2
	t[i] = x
	for i >>= 1; i > 0; i >>= 1 {
		best := t[2*i].or(t[2*i+1], 0)
		if best == t[i] { // nothing changes above
			return
		}
		t[i] = best
	}
}

// least returns the leaf with the least key among the ways of [lo, hi).
func (t tree) least(lo, hi int) (best leaf) {
	n := len(t) / 2
	for lo, hi = lo+n, hi+n; lo < hi; lo, hi = lo>>1, hi>>1 {
		if lo&1 == 1 {
			best = best.or(t[lo], 0)
			lo++
		}
		if hi&1 == 1 {
			hi--
			best = best.or(t[hi], 0)
		}
	}
	return best
}
