package gc

import (
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
}

// A cycle of Go 1.26 on two cores of an AMD EPYC takes about 0.1 ms with an empty heap and
// 0.25 ms more for each MiB of it that has pointers; a tracked object adds a
// step to the walk and a weak handle to the mark. What a machine and its load
// make of that is the factor that the meter learns.
const (
	priorBase       = 100 * time.Microsecond
	priorPerMiB     = 250 * time.Microsecond
	priorPerTracked = 30 // ns
	meterKeep       = 0.5
)

// cyclesMetric counts cycles when their mark ends; their sweep is still to come.
const cyclesMetric = "/gc/cycles/total:gc-cycles"

func newMeter() *meter {
	m := new(meter)
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
	return float64(priorBase) + float64(priorPerMiB)*float64(m.scan)/(1<<20) + priorPerTracked*float64(tracked)
}

// learn notes that a cycle took d, which began gap after the one before had ended.
// One that begins sooner than it takes may first have to sweep, on one
// goroutine, what that one left: about as long as its own mark
// (results/2026-11-21-cuda-dense). Of such a d, half to all counts, whichever
// is nearest to what was expected. Otherwise a cycle that follows at once
// would seem long, and so be started at once again.
func (m *meter) learn(d, gap time.Duration, tracked int) {
	prior := m.prior(tracked)
	f := float64(d) / prior
	if m.factor != 0 {
		if gap < d {
			f = min(max(m.factor, f/2), f)
		}
		f = meterKeep*m.factor + (1-meterKeep)*f
	}
	m.factor = f
}
