package sim

import (
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
)

// Told distorts the points of a policy. The zero value is the truth.
type Told struct {
	Limit   float64 // factor of the limit; 0: 1
	Cost    float64 // factor of the cost of a cycle; 0: 1
	Learned bool    // with a Machine: cost and slowdown are learned from the run's cycles, by the code of gc.Collector
}

func (t *Told) limit(bytes int64) int64 {
	if t.Limit == 0 || bytes == 0 {
		return bytes
	}
	return max(1, int64(t.Limit*float64(bytes)))
}

func (t *Told) cost(d time.Duration) time.Duration {
	if t.Cost == 0 {
		return d
	}
	return time.Duration(t.Cost * float64(d))
}

// A learner learns from the cycles of a run as a collector of package gc does, from the same
// measurements.
type learner struct {
	*policy.Expectation
	cores int
	heap  uint64 // bytes of the Go heap with pointers
}

// newLearner returns the state before the first cycle.
func newLearner(cores int, heap int64) *learner {
	n := max(1, cores)
	l := &learner{policy.NewExpectation(n), n, uint64(heap)}
	l.See(l.heap, 0)
	return l
}

// tell replaces the true costs by the learned ones, if any.
func (l *learner) tell(g *governor.Governor) {
	if l != nil {
		g.Cost, g.Slowdown = l.Cost, g.Progress()
	}
}

// learn notes a cycle of that length, which found freed objects dead and left the others.
func (l *learner) learn(took time.Duration, left, freed int64) {
	l.Learn(policy.Measured{Length: took, Work: time.Duration(l.cores) * took, Processors: l.cores, Scan: l.heap, Tracked: int(left + freed)})
	l.See(l.heap, int(left))
}
