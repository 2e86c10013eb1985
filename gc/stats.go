package gc

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// Lengths of the arrays by Action and by Trigger.
const (
	actions  = policy.Block + 1
	triggers = policy.TriggerExplicit + 1
)

// Stats counts what a collector has done since it was made.
type Stats struct {
	Cycles    [triggers]uint64 // by Trigger
	Decisions [actions]uint64  // by Action
	Freed     int64            // bytes that cycles gave back, of all spaces
	Objects   uint64           // objects that cycles gave back
	Busy      time.Duration    // sum of the cycles' durations, but for those of the runtime's own
	Processor time.Duration    // that those have taken, of all cores, but for what only idle ones did
	Exposed   time.Duration    // sum of the callers' pauses
	MaxPause  time.Duration    // longest pause of a caller
	Pauses    [pauses]uint64   // callers' pauses by length: those in [i] are at most PauseBound(i)
	Tracked   int              // objects tracked when the last cycle had settled
	Cost      time.Duration    // expected duration of the next cycle
	Slowdown  float64          // of the program that is expected beside it: 0 = none, 1 = half speed
	Failures  uint64           // failures contained: see Collector.Err
	Capped    uint64           // cycles that the policy wanted and Caps did not allow
	Overtaken uint64           // cycles for a gauge that began while finalizers or cleanups were due
	Pending   int              // dead objects whose release has not ended yet
	OverLimit bool             // the last cycle for the memory of Own left more than its limit; the log has why
	Over      uint64           // how often that has begun
	Last      policy.Cycle     // the last cycle
}

// Stats returns the counts so far.
func (c *Collector) Stats() Stats {
	pending := c.releases.pending()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Pending, s.OverLimit = pending, c.over.now
	s.Tracked, s.Cost, s.Slowdown = c.tracked, c.expected.Cost, c.expected.Slowdown
	return s
}

func (s *Stats) cycle(c policy.Cycle, w Work, objects int) {
	s.Cycles[c.Trigger]++
	s.Freed += w.Freed
	s.Objects += uint64(objects)
	s.Busy += w.Busy
	s.Processor += w.Processor
	s.Last = c
}

func (s *Stats) pause(d time.Duration) {
	s.Exposed += d
	s.MaxPause = max(s.MaxPause, d)
	i := 0
	for i < pauses-1 && d > PauseBound(i) {
		i++
	}
	s.Pauses[i]++
}

// pauses is how many lengths Stats.Pauses tells apart.
const pauses = len(pauseBounds) + 1

// pauseBounds are in microseconds.
var pauseBounds = [...]time.Duration{
	100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 50e3, 100e3, 200e3, 500e3, 1e6, 2e6, 5e6, 10e6,
}

// PauseBound returns the longest pause that Stats.Pauses[i] counts: 100 us, 200 us,
// 500 us, 1 ms and so on up to 10 s. The last one has no bound.
func PauseBound(i int) time.Duration {
	if i >= pauses-1 {
		return math.MaxInt64
	}
	return pauseBounds[i] * time.Microsecond
}
