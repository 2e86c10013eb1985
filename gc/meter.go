package gc

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// A meter reads what the runtime knows about its collector, and learns from
// measured cycles how long the next will take.
type meter struct {
	samples [2]metrics.Sample
	last    time.Duration // when it was read
	first   uint64        // cycles when it was made
	total   uint64        // cycles of the process, from its start
	scan    uint64        // bytes of the Go heap that a cycle has to scan
	factor  float64       // measured / prior; 0 until a cycle has been measured
	perMiB  float64       // ns
}

// A cycle of Go 1.26 takes about 0.1 ms with an empty heap. For each MiB of it
// that has pointers it takes 0.25 ms more on two cores of an AMD EPYC, and 0.15,
// 0.09 and 0.05 on 4, 8 and 16 of an Intel Xeon, since idle cores mark too. A tracked
// object adds a step to the walk and a weak handle to the mark. What a machine and
// its load make of that is the factor that the meter learns.
const (
	priorBase       = 100 * time.Microsecond
	priorPerMiB     = 600 * time.Microsecond // by one core
	priorPerTracked = 30                     // ns
	meterKeep       = 0.5
)

const (
	cyclesMetric = "/gc/cycles/total:gc-cycles"     // counts cycles when their mark ends; their sweep is still to come
	stopsMetric  = "/sched/pauses/total/gc:seconds" // a histogram: two for each cycle
)

func newMeter() *meter {
	m := &meter{perMiB: float64(priorPerMiB) / float64(runtime.GOMAXPROCS(0))}
	m.samples[0].Name = cyclesMetric
	m.samples[1].Name = "/gc/scan/heap:bytes"
	m.read(0)
	m.first = m.total
	return m
}

// read takes a reading, which costs about 0.1 us.
func (m *meter) read(now time.Duration) {
	metrics.Read(m.samples[:])
	m.total, m.scan = m.samples[0].Value.Uint64(), m.samples[1].Value.Uint64()
	m.last = now
}

// cost is how long a cycle started now will take.
func (m *meter) cost(tracked int) time.Duration {
	factor := m.factor
	if factor == 0 {
		factor = 1
	}
	return time.Duration(factor * m.prior(tracked))
}

func (m *meter) prior(tracked int) float64 {
	return float64(priorBase) + m.perMiB*float64(m.scan)/(1<<20) + priorPerTracked*float64(tracked)
}

// learn notes that a cycle took d.
func (m *meter) learn(d time.Duration, tracked int) {
	f := float64(d) / m.prior(tracked)
	if m.factor != 0 {
		f = meterKeep*m.factor + (1-meterKeep)*f
	}
	m.factor = f
}
