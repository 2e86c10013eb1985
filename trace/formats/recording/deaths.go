package recording

import (
	"cmp"
	"slices"
	"time"

	"github.com/eagergc/eagergc/trace"
)

// Earliest moves deaths that only a cycle found to the earliest time that they can have. Such an
// object died after its allocation, after the begin of the cycle before, and before the begin of
// the cycle that found it. So the reachable bytes of the program are at least those of the result,
// and at most those of t. An object that no cycle found may have died right after the last cycle.
//
// Earliest returns a new trace. For each death that a cycle found it also returns the time by which
// the trace may have it too late, sorted. If the program reported every death, there are none, and
// the events are those of t. In a trace without cycles, each time at which something was found dead
// counts as a cycle. The trace must be valid.
func Earliest(t *trace.Trace) (*trace.Trace, []time.Duration) {
	var cycles []int64                                             // when they began
	dropped, born := make(map[uint64]bool), make(map[uint64]int64) // objects that nothing is known to have ended
	for _, e := range t.Events {
		switch e.Kind {
		case trace.Cycle:
			cycles = append(cycles, e.Time)
		case trace.Drop:
			dropped[e.ID] = true
		}
	}
	found := func(e trace.Event) bool { return e.Kind == trace.Free && e.Aux == trace.FreeCycle && !dropped[e.ID] }
	if cycles == nil {
		for _, e := range t.Events {
			if found(e) {
				cycles = append(cycles, e.Time)
			}
		}
		cycles = slices.Compact(cycles)
	}
	out := *t
	out.Events = nil
	var drops []trace.Event
	drop := func(e trace.Event, at int64) trace.Event {
		e.Kind, e.Aux, e.Time = trace.Drop, 0, at
		return e
	}
	var late []time.Duration
	for _, e := range t.Events {
		switch {
		case e.Kind == trace.Alloc:
			born[e.ID] = e.Time
		case found(e):
			first, last := born[e.ID], e.Time
			if i, exact := slices.BinarySearch(cycles, e.Time); exact || i > 0 {
				if !exact {
					i--
				}
				if last = max(first, cycles[i]); i > 0 {
					first = max(first, cycles[i-1])
				}
			}
			late = append(late, time.Duration(last-first))
			if first == e.Time {
				out.Events = append(out.Events, drop(e, first)) // before the free
			} else {
				drops = append(drops, drop(e, first))
			}
			fallthrough
		case e.Kind == trace.Drop || e.Kind == trace.Free:
			delete(born, e.ID)
		}
		out.Events = append(out.Events, e)
	}
	if len(late) > 0 {
		for _, e := range t.Events {
			if at, ok := born[e.ID]; ok && e.Kind == trace.Alloc {
				drops = append(drops, drop(e, max(at, cycles[len(cycles)-1])))
			}
		}
	}
	out.Events = append(out.Events, drops...)
	slices.SortStableFunc(out.Events, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	slices.Sort(late)
	return &out, late
}
