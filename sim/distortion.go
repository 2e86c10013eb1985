package sim

import "time"

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
