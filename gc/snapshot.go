package gc

import (
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A Snapshot is what a collector knew and had done at one moment. It is the caller's.
//
// What was done in the last minutes is kept in steps of time. A step is
// 17 ms long at first. Whenever 512 of them are full, each becomes twice as
// long, up to 0.54 s; from then on the oldest are forgotten, after 4.6 minutes.
type Snapshot struct {
	Now       time.Duration // the collector's clock
	Policy    string        // text form
	Running   bool          // a cycle that the collector has asked for is under way
	Err       error         // see Collector.Err
	Caps      Caps          // with their defaults filled in
	Stats     Stats
	Sources   []Watched         // what the collector watches: pools, gauges, and what was given to Own and Account
	Libraries []Counted         // see Collector.Counters
	Cycles    []policy.Cycle    // the last ones, oldest first
	Decisions []Decided         // the last ones, oldest first; of skips in a row for one reason, only the first
	Reasons   map[string]uint64 // how many decisions there were, by reason
	Survivors []Survivor        // where the memory was given to Own that many cycles have not found dead, the largest site first; from samples
	Step      time.Duration     // the length of a step
	Work      []Work            // of the steps in which a cycle ended or a caller was held, oldest first
}

// A Watched is one memory that a collector watches.
type Watched struct {
	pressure.Sample
	Settled int64   // live bytes when the last cycle had settled: about what was reachable then; -1 before the first
	Levels  []Level // of the steps in which the collector has read it, oldest first
}

// A Decided is a point and what the policy made of it.
type Decided struct {
	policy.Point
	policy.Decision
	Repeats int // how often in a row the policy skipped for this reason, this time included
}

// Snapshot returns what the collector knows. It takes the collector's lock for some microseconds.
func (c *Collector) Snapshot() Snapshot {
	s := Snapshot{Running: c.running(), Survivors: c.survivors(), Libraries: c.Counters(), Stats: c.Stats(), Now: c.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Policy, s.Err, s.Caps = c.policy.String(), c.err, c.throttle.Caps
	s.Cycles, s.Decisions, s.Reasons = c.journal.cycles.list(), c.journal.decisions.list(), make(map[string]uint64)
	for reason, n := range c.journal.reasons {
		s.Reasons[reason] = *n
	}
	c.seeAll(s.Now)
	c.history(&s)
	return s
}

// Last sums up what was done in the last d, or since the start, and returns how long that
// is, at least 1 ns.
func (s *Snapshot) Last(d time.Duration) (done Work, span time.Duration) {
	done.Start = max(0, s.Now-d)
	for _, w := range s.Work {
		if w.Start+s.Step > done.Start {
			done.add(&w)
		}
	}
	return done, max(s.Now-done.Start, 1)
}

// recentLen is how many cycles and decisions a collector remembers.
const recentLen = 64

// A journal remembers the last decisions and cycles.
type journal struct {
	cycles    ring[policy.Cycle]
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

func (j *journal) decided(p policy.Point, d policy.Decision) {
	newest := j.decisions.newest()
	if j.last == nil || d.Reason != newest.Reason {
		if j.reasons == nil {
			j.reasons = make(map[string]*uint64)
		}
		if j.last = j.reasons[d.Reason]; j.last == nil {
			j.last = new(uint64)
			j.reasons[d.Reason] = j.last
		}
	} else if d.Action == policy.Skip && newest.Action == policy.Skip {
		*j.last++
		newest.Repeats++
		return
	}
	*j.last++
	j.decisions.put(Decided{Point: p, Decision: d, Repeats: 1})
}

// lastReason is why the policy asked for the last cycle that it wanted.
func (j *journal) lastReason() string {
	all := j.decisions.list()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Action != policy.Skip {
			return all[i].Reason
		}
	}
	return ""
}

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
