package gc

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/gc/internal/goruntime"
	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/internal/verdict"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A Finding is a judgement on the memory of a process or a collector. Level is "good", "watch" or
// "bad". Verdict is a short constant, and Reason has the figures behind it. Next is the step to
// take. See is the address of a page that says more; it may be empty.
type Finding = verdict.Finding

// SetAllocatorStats sets the function that reads the bytes which the C allocator has handed out,
// and those that it keeps. Package gc/with/malloc does that for glibc. Packages gc/auto and
// gc/debug need them.
func SetAllocatorStats(read func() (inUse, kept int64)) { verdict.SetAllocator(read) }

// A Snapshot is the state of a collector and its history at one moment. The caller owns it.
//
// The history of the last 4.6 minutes is kept in 512 steps of 0.54 s each.
type Snapshot struct {
	Now       time.Duration // the collector's clock
	Policy    string        // text form
	Process   Finding       // verdict of package gc/auto on the process; zero where that does not run
	Running   bool          // a cycle of the collector is under way
	Closed    bool          // Collector.Close has been called
	Err       error         // see Collector.Err
	Caps      Caps          // with their defaults filled in
	Stats     Stats
	Sources   []Watched         // pools, gauges, and the memory of Own and Account
	Libraries []Counted         // see Collector.Counters
	Cycles    []policy.Cycle    // the last ones, oldest first
	Decisions []Decided         // the last ones, oldest first; of skips in a row for one reason, only the first
	Reasons   map[string]uint64 // number of decisions, by reason
	Survivors []Survivor        // from samples, the largest first
	Step      time.Duration     // length of a step
	Work      []Work            // the steps in which a cycle ended or a caller was held, oldest first
}

// A Watched is one memory that a collector watches.
type Watched struct {
	pressure.Sample
	Settled int64   // live bytes when the last cycle had settled: about the reachable ones; -1 before the first
	Worth   string  // of a gauge: what cycles bring back, and the processor time that they may take; a sentence
	Levels  []Level // the steps in which the collector has read the memory, oldest first
}

// A Decided is a point and the policy's decision.
type Decided struct {
	policy.Point
	policy.Decision
	Repeats int // number of skips in a row for this reason, including this one
}

// A Survivor is memory given to [Own] at one allocation site that has outlived many cycles. It is a
// cache, a leak, or an owner that its own release keeps alive. Site is the stack, innermost first.
// Bytes is estimated from Samples samples, of which the oldest has outlived Cycles cycles.
type Survivor = observe.Survivor

// Snapshot returns the state of the collector. It takes the collector's lock for some microseconds.
func (c *Collector) Snapshot() Snapshot {
	s := Snapshot{Running: c.running(), Libraries: c.Counters(), Stats: c.Stats(), Now: c.Now(), Process: verdict.Current()}
	s.Survivors = c.samples.Survivors(c.settled.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Policy, s.Err, s.Closed, s.Caps = c.governor.Policy().String(), c.observed.err, c.life.closed, c.governor.Caps()
	s.Cycles, s.Decisions = latest(c.observed.journal.cycles), latest(c.observed.journal.decisions)
	s.Reasons = maps.Clone(c.observed.journal.reasons)
	s.Step, s.Work = observe.Step, c.observed.work.List(s.Now)
	for _, g := range c.gates {
		w := Watched{Sample: g.read(s.Now), Settled: -1, Levels: g.past.List(s.Now)}
		if c.settled.Load() > 0 {
			w.Settled = g.memory.Kept()
		}
		if g.gauge != nil {
			w.Worth = sayWorth(g.gauge.seen.Load().worth)
		}
		s.Sources = append(s.Sources, w)
	}
	return s
}

// Last sums up the work of the last d, or since the start if that is shorter. Span is the length of
// that time, at least 1 ns.
func (s *Snapshot) Last(d time.Duration) (done Work, span time.Duration) {
	done.Start = max(0, s.Now-d)
	for _, w := range s.Work {
		if w.Start+s.Step > done.Start {
			done.add(w)
		}
	}
	return done, max(s.Now-done.Start, 1)
}

// Shares returns the share of the processor time of span that cycles took, and the share of span for
// which callers were held. Span is the time in which the work was done: see [Snapshot.Last].
func (w *Work) Shares(span time.Duration) (cycles, held float64) {
	return float64(w.Processor) / float64(span) / float64(goruntime.Processors()), float64(w.Exposed) / float64(span)
}

// A journal remembers the last decisions and cycles.
type journal struct {
	cycles    []policy.Cycle
	decisions []Decided
	reasons   map[string]uint64
}

func (j *journal) decided(p *policy.Point, d *policy.Decision) {
	j.reasons[d.Reason]++
	if n := len(j.decisions); n > 0 && d.Action == policy.Skip {
		if newest := &j.decisions[n-1]; newest.Action == policy.Skip && newest.Reason == d.Reason {
			newest.Repeats++
			return
		}
	}
	j.decisions = put(j.decisions, Decided{Point: *p, Decision: *d, Repeats: 1})
}

const journalLen = 64

// put appends x, and keeps no more than twice journalLen entries.
func put[T any](list []T, x T) []T {
	if len(list) == 2*journalLen {
		list = slices.Delete(list, 0, journalLen)
	}
	return append(list, x)
}

// latest returns a copy of the last journalLen entries.
func latest[T any](list []T) []T { return slices.Clone(list[max(0, len(list)-journalLen):]) }

// The number of triggers.
const triggers = policy.TriggerExplicit + 1

// Stats are the counts of a collector since it was made.
type Stats struct {
	Work                               // since the collector was made
	Decisions [policy.Block + 1]uint64 // by Action
	Objects   uint64                   // objects that cycles gave back
	Pauses    [len(pauseBounds)]uint64 // callers' pauses by length: those in [i] are at most PauseBound(i)
	Tracked   int                      // objects tracked when the last cycle had settled
	Cost      time.Duration            // expected duration of the next cycle
	Slowdown  float64                  // expected slowdown of the program beside it: 0 = none, 1 = half speed
	Failures  uint64                   // contained failures: see Collector.Err
	Overtaken uint64                   // cycles for a gauge that began while finalizers or cleanups were due
	Pending   int                      // dead objects whose release has not ended yet
	OverLimit bool                     // the last cycle for the memory of Own left more than its limit; the log has the reason
	Last      policy.Cycle             // the last cycle
}

// Stats returns the counts so far.
func (c *Collector) Stats() Stats {
	pending := c.releases.Pending()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.observed.stats
	s.Pending, s.OverLimit = pending, c.observed.over.Now
	s.Tracked, s.Cost, s.Slowdown = c.runtime.tracked, c.governor.Cost, c.governor.Slowdown
	return s
}

func (s *Stats) pause(d time.Duration) {
	i := 0
	for d > PauseBound(i) {
		i++
	}
	s.Pauses[i]++
}

var pauseBounds = [...]time.Duration{
	100e3, 200e3, 500e3, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6, 1e9, 2e9, 5e9, 10e9, math.MaxInt64,
}

// PauseBound returns the longest pause that Stats.Pauses[i] counts: 100 us, 200 us, 500 us, 1 ms
// and so on up to 10 s. The last one has no bound.
func PauseBound(i int) time.Duration { return pauseBounds[min(i, len(pauseBounds)-1)] }

// A Level is the live memory of a source in one step. Its extremes are exact, because the collector
// reads a source when it asks the policy, and right before and after a cycle gives memory back.
type Level struct {
	Start       time.Duration // of the step
	First, Last int64         // live bytes at the first reading and at the last one
	Least, Most int64         // live bytes
	Reserved    int64         // the most
	Limit       int64         // the last; 0 = none known
}

// Work sums up the cycles and pauses of one step, or of a longer time.
type Work struct {
	Start     time.Duration    // of that time
	Cycles    [triggers]uint64 // that have ended, by Trigger
	Busy      time.Duration    // sum of their durations, without those of the runtime
	Processor time.Duration    // processor time of these cycles, without work that only idle cores did
	Freed     int64            // bytes that cycles gave back, of all spaces
	Exposed   time.Duration    // sum of the callers' pauses that have ended
	MaxPause  time.Duration    // the longest of these pauses
}

func (w *Work) add(x Work) {
	for t, n := range x.Cycles {
		w.Cycles[t] += n
	}
	w.Busy += x.Busy
	w.Processor += x.Processor
	w.Freed += x.Freed
	w.Exposed += x.Exposed
	w.MaxPause = max(w.MaxPause, x.MaxPause)
}
