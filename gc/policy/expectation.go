package policy

import (
	"slices"
	"time"
)

// An Expectation is the expected cost of the next cycle, which a collector passes to its policy.
// It starts from cycles measured elsewhere, and learns from cycles measured here. It is exported
// so that a simulation can pass the same cost as a collector. One goroutine at a time may use it.
// Make one with [NewExpectation].
type Expectation struct {
	Cost time.Duration // see Point
	Work time.Duration // see Point

	costs costModel
	works workModel
}

// A Measured holds a collector's measurements of one cycle.
type Measured struct {
	Length     time.Duration // without the sweep that the last cycle left
	Work       time.Duration // processor time of all processors
	Processors int           // GOMAXPROCS
	Scan       uint64        // see [Expectation.See]
	Tracked    int           // see [Expectation.See]
}

// NewExpectation returns the expectation of a program with the given number of processors
// (GOMAXPROCS) before its first cycle. It takes the heap to be empty until [Expectation.See] is
// called.
func NewExpectation(processors int) *Expectation {
	n := float64(processors)
	e := &Expectation{
		costs: costModel{base: float64(priorBase), perMiB: float64(priorPerMiB) / n},
		works: workModel{costModel: costModel{base: float64(priorWork), perMiB: float64(priorWorkPerMiB) / n}},
	}
	e.See(0, 0)
	return e
}

// See sets Cost and Work for a cycle that starts now. Scan is the bytes of the Go heap to scan,
// and tracked is the number of objects to check.
func (e *Expectation) See(scan uint64, tracked int) {
	e.Cost, e.Work = e.costs.cost(scan, tracked), e.works.cost(scan, tracked)
}

// Learn takes a cycle that has ended. Cost and Work change at the next See.
func (e *Expectation) Learn(m Measured) {
	e.costs.learn(m.Length, m.Scan, m.Tracked)
	e.works.learn(m.Work/time.Duration(m.Processors), m.Scan, m.Tracked)
}

// A costModel predicts how long a cycle takes. It starts from cycles measured elsewhere, and
// learns from cycles measured here.
type costModel struct {
	factor float64 // measured / prior; 0 until a cycle has been measured
	base   float64 // ns
	perMiB float64 // ns
}

// In a working program, a cycle of Go 1.26 takes about 0.7 ms with almost no heap. Each MiB of the
// heap that has pointers adds 0.41 ms on two cores. On four cores it adds 0.2 to 0.23 ms, because
// idle cores mark too. So the machines of results/2026-11-22-fidelity take 0.9 to 1.2 times as long
// as expected.
//
// The processor time is that of an idle program: 0.1 ms, and 0.25 ms on two cores of an AMD EPYC. A
// tracked object adds a step to the walk and a weak handle to the mark. The factor that the model
// learns covers the machine and its load.
const (
	priorBase       = 700 * time.Microsecond
	priorPerMiB     = 850 * time.Microsecond // by one core
	priorWork       = 100 * time.Microsecond
	priorWorkPerMiB = 600 * time.Microsecond // by one core
	priorPerTracked = 30                     // ns
	costKeep        = 0.5                    // weight of the old factor; each measured cycle has the other half
)

// cost returns how long a cycle that starts now will take. Scan is the bytes of the Go heap to
// mark, and tracked is the number of tracked objects.
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

// A workModel predicts the processor time of a cycle, divided by GOMAXPROCS. Go also counts time
// in which the system had given the processor to another process. So on a busy machine a single
// measurement may be many times too high. The model therefore uses the median of the last ones.
type workModel struct {
	costModel
	factors [5]float64 // measured / prior, of the last cycles
	n       int        // cycles measured
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
