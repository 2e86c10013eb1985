package sim

import (
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A Result holds the metrics of one run: one trace under one policy, limit and cost. Its JSON form
// has these names and no others, so that results of different versions and of live runs compare.
// Fields in nanoseconds end in _ns, in bytes in _bytes.
type Result struct {
	Trace              string        `json:"trace"`
	Policy             string        `json:"policy"`
	LimitFactor        float64       `json:"limit_factor"` // limit / peak reachable bytes
	LimitBytes         int64         `json:"limit_bytes"`  // 0 = none
	Cycle              time.Duration `json:"cycle_ns"`     // cost of a cycle; of the first one where it varies
	Ladder             time.Duration `json:"ladder_ns"`
	Collections        int           `json:"collections"`         // cycles that the policy asked for
	RefusalCollections int           `json:"refusal_collections"` // cycles that the ladder ran
	FailedAllocs       int           `json:"failed_allocs"`       // did not fit even after the ladder
	ExposedPause       time.Duration `json:"exposed_pause_ns"`    // sum of the pauses, beyond the waits they hid behind
	MaxPause           time.Duration `json:"max_pause_ns"`
	GCBusy             time.Duration `json:"gc_busy_ns"` // cost of all cycles, hidden ones included; on a Machine, of those that have ended
	PeakLive           int64         `json:"peak_live_bytes"`
	MeanLive           float64       `json:"mean_live_bytes"` // weighted by elapsed time
	MeanGarbage        float64       `json:"mean_garbage_bytes"`
	Span               time.Duration `json:"span_ns"`    // of the recording
	Elapsed            time.Duration `json:"elapsed_ns"` // span + every delay; on a Machine, also the wait at the end
	Slowed             time.Duration `json:"-"`          // lost by the program beside overlapped cycles
}

// CPUPrice is the price of a second of collector time, in seconds of exposed pause, for comparisons
// that need one number. It is our choice, because only the user knows the worth of a core. A pause
// may cost more than its length. In a job on many machines, all wait for the slowest: see Lin et
// al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025.
const CPUPrice = 0.05

// Objective is delay + CPUPrice x collector time: the one number by which runs are ranked.
func (r *Result) Objective() time.Duration {
	return r.Delay() + time.Duration(CPUPrice*float64(r.GCBusy))
}

// Delay is the program's loss: exposed pause, and the slowdown beside overlapped cycles. Other
// differences from the recorded time, which a machine has, do not count.
func (r *Result) Delay() time.Duration { return r.ExposedPause + r.Slowed }

// A Log collects the events of a run, in order. A nil *Log collects nothing.
type Log struct {
	Decisions []Decided // every question and its answer, if KeepDecisions is set
	Cycles    []Collected
	Pauses    []Pause
	slowed    []Pause // time that the program lost beside a cycle, up to an event

	KeepDecisions bool // set before the run; a run may ask millions of times
	KeepReasons   bool // keeps only decisions that asked for a cycle, and the last one before each cycle

	seen int // cycles when the last decision was made
}

// decide keeps a decision, if it is to be kept.
func (l *Log) decide(trace time.Duration, at *policy.Point, answer policy.Decision) {
	if l == nil || !l.KeepDecisions && !l.KeepReasons {
		return
	}
	d := Decided{trace, *at, answer}
	if !l.KeepDecisions && len(l.Decisions) > 0 {
		if last := &l.Decisions[len(l.Decisions)-1]; last.Action == policy.Skip && l.seen == len(l.Cycles) {
			*last = d
			return
		}
	}
	l.Decisions, l.seen = append(l.Decisions, d), len(l.Cycles)
}

func (l *Log) slow(trace int64, length time.Duration) {
	if l != nil && length > 0 {
		l.slowed = append(l.slowed, Pause{Trace: time.Duration(trace), Length: length})
	}
}

// Wasted counts the cycles that freed less than 1 % of the live bytes.
func (l *Log) Wasted() (n int) {
	for _, c := range l.Cycles {
		if c.Freed*100 < c.LiveAfter+c.Freed {
			n++
		}
	}
	return n
}

// Lengths returns the lengths of the exposed pauses of a run, the shortest first. The result is the
// caller's.
func (l *Log) Lengths() []time.Duration {
	lengths := make([]time.Duration, len(l.Pauses))
	for i, p := range l.Pauses {
		lengths[i] = p.Length
	}
	slices.Sort(lengths)
	return lengths
}

// Latencies returns the metered latency of each interval between two sync points (a step of the
// program, as its user sees it), sorted. An interval counts from when it should have begun if all
// began at equal distances, as DaCapo Chopin's LatencyReporter does it with its longest window. So an
// interval counts the delay of those before it.
func (w *Workload) Latencies(l *Log) []time.Duration {
	var begins, ends []float64
	delay, next := time.Duration(0), 0
	at := func(t int64) float64 {
		for ; next < len(l.Pauses) && int64(l.Pauses[next].Trace) <= t; next++ {
			delay += l.Pauses[next].Length
		}
		return float64(t) + float64(delay)
	}
	begin := at(0)
	for i := range w.points {
		if p := &w.points[i]; p.sync {
			end := at(p.time + p.arg)
			begins, ends = append(begins, begin), append(ends, end)
			begin = end
		}
	}
	out := make([]time.Duration, len(ends))
	for i, begin := range begins {
		if last := len(begins) - 1; last > 0 {
			due := begins[0] + float64(i)*(begins[last]-begins[0])/float64(last)
			begin = min(begin, due)
		}
		out[i] = time.Duration(math.Round(ends[i] - begin))
	}
	slices.Sort(out)
	return out
}
