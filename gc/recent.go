package gc

import "github.com/eagergc/eagergc/pressure"

// A Decided is a point and what the policy made of it.
type Decided struct {
	Point
	Decision
	Repeats int // how often in a row the policy skipped for this reason, this time included
}

// Recent is what a collector did last, oldest first.
type Recent struct {
	Cycles    []Cycle
	Decisions []Decided // of skips in a row for one reason, only the first
}

// recentLen is how many cycles and decisions a collector remembers.
const recentLen = 64

// A journal remembers the last decisions and cycles. It is guarded by the
// collector's mu.
type journal struct {
	cycles    ring[Cycle]
	decisions ring[Decided]
	reasons   map[string]*uint64
	last      *uint64 // count of the last decision's reason
}

// A ring keeps the last values that were put into it.
type ring[T any] struct {
	values [recentLen]T
	n      int // ever put
}

func (r *ring[T]) put(v T)    { r.values[r.n%recentLen] = v; r.n++ }
func (r *ring[T]) newest() *T { return &r.values[(r.n+recentLen-1)%recentLen] }

func (r *ring[T]) list() []T {
	var all []T
	for i := max(0, r.n-recentLen); i < r.n; i++ {
		all = append(all, r.values[i%recentLen])
	}
	return all
}

func (j *journal) decided(p Point, d Decision) {
	newest := j.decisions.newest()
	if j.last != nil && d.Reason == newest.Reason {
		*j.last++
		if d.Action == Skip && newest.Action == Skip {
			newest.Repeats++
			return
		}
	} else {
		j.count(d.Reason)
	}
	j.decisions.put(Decided{Point: p, Decision: d, Repeats: 1})
}

// lastReason is why the policy asked for the last cycle that it wanted.
func (j *journal) lastReason() string {
	for i := range min(j.decisions.n, recentLen) {
		if d := j.decisions.values[(j.decisions.n-1-i)%recentLen]; d.Action != Skip {
			return d.Reason
		}
	}
	return ""
}

func (j *journal) count(reason string) {
	if j.reasons == nil {
		j.reasons = make(map[string]*uint64)
	}
	if j.last = j.reasons[reason]; j.last == nil {
		j.last = new(uint64)
		j.reasons[reason] = j.last
	}
	*j.last++
}

// Recent returns the last cycles and decisions. They are the caller's.
func (c *Collector) Recent() Recent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Recent{c.journal.cycles.list(), c.journal.decisions.list()}
}

// Reasons returns how many decisions there were, by reason. It is the caller's.
func (c *Collector) Reasons() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]uint64, len(c.journal.reasons))
	for reason, n := range c.journal.reasons {
		all[reason] = *n
	}
	return all
}

// Settled returns what every source that is watched held when the last cycle had
// settled, in the order of [Collector.Samples]: about what was reachable then. It is
// empty before the first cycle.
func (c *Collector) Settled() []pressure.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []pressure.Sample
	if c.settled.Load() > 0 {
		for _, g := range c.gates {
			s := g.source.Sample()
			s.Live = g.liveAfter
			all = append(all, s)
		}
	}
	return all
}

// Samples returns a reading of every source that is watched, in the order of
// their Watch.
func (c *Collector) Samples() []pressure.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]pressure.Sample, len(c.gates))
	for i, g := range c.gates {
		all[i] = g.source.Sample()
	}
	return all
}
