package sim

import (
	"math/rand/v2"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// Told distorts what a policy sees: limit and cost, times a factor. The zero value is the truth.
type Told struct {
	Limit   float64 // factor of the limit that is told; 0: as it is
	Cost    float64 // the same of the cost of a cycle
	Learned bool    // cost and slowdown are what a gc.Collector has learned from the cycles of the run
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

// A learner is what a [gc.Collector] has learned from the cycles of a run: by the same code,
// from what that would have measured.
type learner struct {
	*policy.Expectation
	cores   int
	heap    uint64  // bytes of the Go heap with pointers
	waiting float64 // goroutines that wait beside a cycle, at most as many as it may displace
	random  *rand.Rand
}

// newLearner returns the state before the first cycle. Collectors see in the end that the program is slowed by
// as much as sees.
func newLearner(cores int, heap int64, sees float64, seed uint64) *learner {
	n := max(1, cores)
	l := &learner{
		Expectation: policy.NewExpectation(n), cores: n, heap: uint64(heap),
		waiting: float64(n) * sees / (1 + sees), random: rand.New(rand.NewPCG(seed, 3)), // apart from the noise and the stalls of a machine
	}
	l.See(l.heap, 0)
	return l
}

// tell tells a policy what was learned. Where nothing learns, it is told the truth already.
func (l *learner) tell(p *policy.Point) {
	if l != nil {
		p.Cost, p.Slowdown = l.Cost, l.Slowdown
	}
}

// learn notes a cycle that took so long, and marked from one time of it to another. It found freed
// objects dead, and left so many.
func (l *learner) learn(took, from, to time.Duration, left, freed int64) {
	m := policy.Measured{Processors: l.cores, Scan: l.heap, Tracked: int(left + freed)}
	before := time.Duration(0)                                                                                   // the last poll before the mark
	for t := before; t < to && m.Polls < mostPolls; t += min(max(t/8, 200*time.Microsecond), time.Millisecond) { // as gc's engine polls
		if t > from {
			m.Polls++
		} else {
			before = t
		}
	}
	m.Length = took - before
	m.Work = time.Duration(l.cores) * m.Length
	most := (l.cores + 3) / 4
	for range m.Polls * most {
		if l.random.Float64()*float64(most) < l.waiting {
			m.Waiting++
		}
	}
	l.Learn(m)
	l.See(l.heap, int(left))
}

const mostPolls = 1000 // in one cycle
