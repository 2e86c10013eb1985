package gc

import (
	"runtime"
	"slices"
	"time"
)

// A costModel says how long a cycle will take. It starts from what cycles take
// elsewhere, and learns from those that are measured here.
type costModel struct {
	factor float64 // measured / prior; 0 until a cycle has been measured
	perMiB float64 // ns
}

// A cycle of Go 1.26 takes about 0.1 ms with an empty heap. For each MiB of the
// heap that has pointers it takes 0.25 ms more on two cores of an AMD EPYC, and
// 0.15, 0.09 and 0.05 ms on 4, 8 and 16 of an Intel Xeon, since idle cores mark
// too. A tracked object adds a step to the walk and a weak handle to the mark.
// The factor that the model learns is for the machine and its load.
const (
	priorBase       = 100 * time.Microsecond
	priorPerMiB     = 600 * time.Microsecond // by one core
	priorPerTracked = 30                     // ns
	costKeep        = 0.5                    // weight of the old factor: half of each measured cycle is believed
)

func newCostModel() costModel {
	return costModel{perMiB: float64(priorPerMiB) / float64(runtime.GOMAXPROCS(0))}
}

// cost is how long a cycle started now will take, with scan bytes of Go heap to
// mark and so many tracked objects.
func (m *costModel) cost(scan uint64, tracked int) time.Duration {
	factor := m.factor
	if factor == 0 {
		factor = 1
	}
	return time.Duration(factor * m.prior(scan, tracked))
}

func (m *costModel) prior(scan uint64, tracked int) float64 {
	return float64(priorBase) + m.perMiB*float64(scan)/(1<<20) + priorPerTracked*float64(tracked)
}

// learn notes that a cycle took d.
func (m *costModel) learn(d time.Duration, scan uint64, tracked int) {
	f := float64(d) / m.prior(scan, tracked)
	if m.factor != 0 {
		f = costKeep*m.factor + (1-costKeep)*f
	}
	m.factor = f
}

// A workModel says how much processor time a cycle will take, for each processor of GOMAXPROCS. Go counts
// the time in which the system had given the processor to another process, too, so that on a busy machine a single measurement may
// be many times too high: the median of the last ones counts.
type workModel struct {
	costModel
	factors [5]float64 // measured / prior, of the last cycles
	n       int        // cycles that were measured
}

// learn notes that a cycle took d.
func (m *workModel) learn(d time.Duration, scan uint64, tracked int) {
	m.factors[m.n%len(m.factors)] = float64(d) / m.prior(scan, tracked)
	m.n++
	last := m.factors
	known := last[:min(m.n, len(last))]
	slices.Sort(known)
	m.factor = known[(len(known)-1)/2]
}

// A contention is what cycles take from the program beside them, in decaying sums over the
// cycles that the collector has run. The zero value has seen none.
type contention struct {
	looks, waiting    float64 // at the goroutines, and those that could run and did not
	processor, length float64 // time of cycles, of processors and on the clock, in ns
}

const contentionKeep = 0.75 // per cycle

func (c *contention) learn(m marking, processor, length time.Duration) {
	if m.looks == 0 || processor <= 0 || length <= 0 {
		return // too short to be seen
	}
	c.looks = contentionKeep*c.looks + float64(m.looks)
	c.waiting = contentionKeep*c.waiting + float64(m.waiting)
	c.processor = contentionKeep*c.processor + float64(processor)
	c.length = contentionKeep*c.length + float64(length)
}

// slowdown is how much longer the program takes beside a cycle. The processors that a
// cycle takes are lost to the program only where goroutines wait for them: with idle
// processors there are none. What sharing caches and memory costs is not seen.
func (c *contention) slowdown() float64 {
	if c.looks == 0 {
		return 0
	}
	n := float64(runtime.GOMAXPROCS(0))
	lost := min(c.waiting/c.looks, c.processor/c.length, n/2)
	return lost / (n - lost)
}
