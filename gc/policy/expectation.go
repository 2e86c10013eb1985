package policy

import (
	"slices"
	"time"
)

// An Expectation is the expected cost of the next cycle, which a collector tells its policy. It starts from
// cycles measured elsewhere, and learns from those that are measured. It is exported so that a
// simulation can tell what a collector would. One goroutine at a time uses it. Make one with [NewExpectation].
type Expectation struct {
	Cost     time.Duration // see Point
	Work     time.Duration // see Point
	Slowdown float64       // see Point

	costs      costModel
	works      workModel
	contention contention
}

// A Measured is a cycle, as a collector measures it.
type Measured struct {
	Length     time.Duration // without the sweep that the last cycle left
	Work       time.Duration // processor time of all processors
	Processors int           // GOMAXPROCS
	Scan       uint64        // see [Expectation.See]
	Tracked    int           // see [Expectation.See]
	Polls      int           // of the goroutines while it marked
	Waiting    int           // goroutines that could run and did not, summed over the polls, in each at most as many as the cycle may displace: a quarter of the processors, rounded up
}

// NewExpectation returns the expectation before the first cycle, of a program with so many
// processors (GOMAXPROCS), no heap and no objects: see [Expectation.See].
func NewExpectation(processors int) *Expectation {
	n := float64(processors)
	e := &Expectation{
		costs: costModel{base: float64(priorBase), perMiB: float64(priorPerMiB) / n},
		works: workModel{costModel: costModel{base: float64(priorWork), perMiB: float64(priorWorkPerMiB) / n}},
	}
	e.See(0, 0)
	return e
}

// See notes that a cycle which started now would scan so many bytes of the Go heap, and check so
// many tracked objects.
func (e *Expectation) See(scan uint64, tracked int) {
	e.Cost, e.Work = e.costs.cost(scan, tracked), e.works.cost(scan, tracked)
}

// Learn notes a cycle that has ended. What it changes shows after the next See, but for the slowdown.
func (e *Expectation) Learn(m Measured) {
	e.costs.learn(m.Length, m.Scan, m.Tracked)
	e.works.learn(m.Work/time.Duration(m.Processors), m.Scan, m.Tracked)
	e.contention.learn(&m)
	e.Slowdown = e.contention.slowdown(m.Processors)
}

// A costModel says how long a cycle will take. It starts from what cycles take
// elsewhere, and learns from those that are measured here.
type costModel struct {
	factor float64 // measured / prior; 0 until a cycle has been measured
	base   float64 // ns
	perMiB float64 // ns
}

// In a program that works a cycle of Go 1.26 takes about 0.7 ms with hardly any heap, and for each MiB of the
// heap that has pointers 0.41 ms more on two cores and 0.2 to 0.23 on four, since idle cores mark too. So the
// machines of results/2026-11-22-fidelity take 0.9 to 1.2 times as long as expected. The processor time is that of an idle
// program: 0.1 ms, and 0.25 on two cores of an AMD EPYC. A tracked object adds a step to the walk and a weak
// handle to the mark. The factor that the model learns is for the machine and its load.
const (
	priorBase       = 700 * time.Microsecond
	priorPerMiB     = 850 * time.Microsecond // by one core
	priorWork       = 100 * time.Microsecond
	priorWorkPerMiB = 600 * time.Microsecond // by one core
	priorPerTracked = 30                     // ns
	costKeep        = 0.5                    // weight of the old factor: half of each measured cycle is believed
)

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
	return m.base + m.perMiB*float64(scan)/(1<<20) + priorPerTracked*float64(tracked)
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
	polls, waiting    float64 // of the goroutines, and those that could run and did not
	processor, length float64 // time of cycles, of processors and on the clock, in ns
}

const contentionKeep = 0.75 // per cycle

func (c *contention) learn(m *Measured) {
	if m.Polls == 0 || m.Work <= 0 || m.Length <= 0 {
		return // too short to be seen
	}
	c.polls = contentionKeep*c.polls + float64(m.Polls)
	c.waiting = contentionKeep*c.waiting + float64(m.Waiting)
	c.processor = contentionKeep*c.processor + float64(m.Work)
	c.length = contentionKeep*c.length + float64(m.Length)
}

// slowdown is how much longer the program takes beside a cycle. The processors that a
// cycle takes are lost to the program only where goroutines wait for them: with idle
// processors there are none. What sharing caches and memory costs is not seen.
func (c *contention) slowdown(processors int) float64 {
	if c.polls == 0 {
		return 0
	}
	n := float64(processors)
	lost := min(c.waiting/c.polls, c.processor/c.length, n/2)
	return lost / (n - lost)
}
