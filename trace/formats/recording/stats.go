package recording

import (
	"math"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Stats are the figures of a trace that do not depend on a policy. The JSON names
// are those used in results. Sizes are in bytes, times in ns.
type Stats struct {
	Events   int `json:"events"`
	Allocs   int `json:"allocs"`
	Drops    int `json:"drops"`
	Frees    int `json:"frees"`
	Syncs    int `json:"syncs"`
	Cycles   int `json:"cycles"`
	Refusals int `json:"refusals"`

	AllocatedBytes int64 `json:"allocated_bytes"`
	// PeakReachable is the largest number of bytes that were allocated and neither
	// dropped nor freed. In a program that counts references this is the peak of
	// live bytes, hence the JSON name.
	PeakReachable int64 `json:"peak_live_bytes"`
	// PeakHeld is the largest number of bytes that were allocated and not freed;
	// garbage counts. In a trace without any Free, a drop gives the bytes back.
	PeakHeld     int64 `json:"peak_held_bytes"`
	PeakReserved int64 `json:"peak_reserved_bytes"` // most bytes taken from the upstream; 0 if the trace does not say
	LastBytes    int64 `json:"last_bytes"`          // reachable at the end
	LastObjects  int   `json:"last_objects"`

	Span      time.Duration `json:"span_ns"`    // from the first Alloc, Drop, Free or Sync to the last
	Wait      time.Duration `json:"wait_ns"`    // sum of the syncs
	CycleTime time.Duration `json:"cycles_ns"`  // sum of the cycles
	WaitShare float64       `json:"wait_share"` // share of the span; above 1 if several threads wait at the same time

	Sizes     Quantiles `json:"size_bytes"`  // of all objects
	Lifetimes Quantiles `json:"lifetime_ns"` // of objects that were dropped or freed
	Waits     Quantiles `json:"sync_ns"`
}

// Quantiles describe a list of values; all are 0 if it is empty. P90 is the
// smallest value that at least 90 % of the values do not exceed.
type Quantiles struct {
	Min  int64   `json:"min"`
	P50  int64   `json:"p50"`
	P90  int64   `json:"p90"`
	P99  int64   `json:"p99"`
	Max  int64   `json:"max"`
	Mean float64 `json:"mean"`
}

// Percentile returns the least of the values that p of a hundred do not exceed: the
// nearest rank. They are sorted; of none it is 0.
func Percentile[T ~int64](sorted []T, p float64) T {
	if len(sorted) == 0 {
		return 0
	}
	rank := math.Ceil(float64(len(sorted))*p/100 - 1e-9) // p in binary is a little off
	return sorted[max(0, int(rank)-1)]
}

// quantiles describes values, and sorts them.
func quantiles(values []int64) Quantiles {
	n := len(values)
	if n == 0 {
		return Quantiles{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	at := func(p float64) int64 { return Percentile(values, p) }
	return Quantiles{Min: values[0], P50: at(50), P90: at(90), P99: at(99), Max: values[n-1], Mean: sum / float64(n)}
}

// StatsOf adds up the events of t. If spaces are given, memory events of other
// spaces do not count. The trace must be valid: see [trace.Trace.Validate].
func StatsOf(t *trace.Trace, spaces ...pressure.Space) Stats {
	a := &adder{born: make(map[uint64]trace.Event), dropFrees: !slices.ContainsFunc(t.Events, func(e trace.Event) bool { return e.Kind == trace.Free })}
	for _, e := range t.Events {
		if e.Kind == trace.Sync || len(spaces) == 0 || slices.Contains(spaces, e.Space) {
			a.event(e)
		}
	}
	return a.finish()
}

// An adder holds the sums while a trace is added up.
type adder struct {
	Stats
	dropFrees                 bool // the trace has no Free: a drop gives the bytes back
	first, last               int64
	reachable, held, reserved int64
	born                      map[uint64]trace.Event // reachable objects
	sizes, waits              []int64
	lifetimes                 []int64 // of the objects that died
}

func (a *adder) event(e trace.Event) {
	a.Events++
	switch e.Kind {
	case trace.Alloc:
		a.Allocs++
		a.AllocatedBytes += e.Bytes
		a.sizes = append(a.sizes, e.Bytes)
		a.born[e.ID] = e
		a.hold(e.Bytes, e.Bytes)
	case trace.Drop:
		a.Drops++
		if size := a.die(e); a.dropFrees {
			a.hold(0, -size)
		}
	case trace.Free:
		a.Frees++
		a.die(e)
		a.hold(0, -e.Bytes)
	case trace.Sync:
		a.Syncs++
		a.Wait += e.Duration
		a.waits = append(a.waits, int64(e.Duration))
	case trace.Cycle:
		a.Cycles++
		a.CycleTime += e.Duration
	case trace.Refuse:
		a.Refusals++
	case trace.Reserve:
		a.reserve(e.Bytes)
	case trace.Release:
		a.reserve(-e.Bytes)
	}
	if e.Kind <= trace.Sync {
		if a.Allocs+a.Drops+a.Frees+a.Syncs == 1 {
			a.first = e.Time
		}
		a.last = e.Time
	}
}

// die removes the object of a Drop or Free from the reachable ones. It returns the
// object's size, or 0 if a drop has removed it before.
func (a *adder) die(e trace.Event) int64 {
	from, ok := a.born[e.ID]
	if !ok {
		return 0
	}
	delete(a.born, e.ID)
	a.lifetimes = append(a.lifetimes, e.Time-from.Time)
	a.hold(-from.Bytes, 0)
	return from.Bytes
}

func (a *adder) hold(reachable, held int64) {
	a.reachable += reachable
	a.held += held
	a.PeakReachable = max(a.PeakReachable, a.reachable)
	a.PeakHeld = max(a.PeakHeld, a.held)
}

func (a *adder) reserve(bytes int64) {
	a.reserved += bytes
	a.PeakReserved = max(a.PeakReserved, a.reserved)
}

func (a *adder) finish() Stats {
	a.Span = time.Duration(a.last - a.first)
	if s := a.Span.Seconds(); s > 0 {
		a.WaitShare = a.Wait.Seconds() / s
	}
	a.LastBytes, a.LastObjects = a.reachable, len(a.born)
	a.Sizes, a.Lifetimes, a.Waits = quantiles(a.sizes), quantiles(a.lifetimes), quantiles(a.waits)
	return a.Stats
}
