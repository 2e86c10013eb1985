package main

import (
	"slices"

	"github.com/eagergc/eagergc/trace"
)

// asItRuns rewrites a recording in which a cycle ran at every wait as if there had been none: what a cycle found dead
// was dropped before it began, and the time for which cycles held the program beyond its waits is taken out.
func asItRuns(path string) error {
	t, err := trace.ReadFile(path)
	if err != nil {
		return err
	}
	var waits, cycles []span
	for _, e := range t.Events {
		s := span{e.Time, e.Time + int64(e.Duration)}
		switch e.Kind {
		case trace.Sync:
			waits = append(waits, s)
		case trace.Cycle:
			cycles = append(cycles, s)
		}
	}
	held := without(cycles, waits)
	var events []trace.Event
	for _, e := range t.Events {
		switch {
		case e.Kind == trace.Free && e.Aux == trace.FreeCycle:
			for i := len(cycles) - 1; i >= 0; i-- {
				if cycles[i].begin <= e.Time {
					e.Time = cycles[i].begin
					break
				}
			}
			e.Kind, e.Aux = trace.Drop, 0
		case e.Kind != trace.Alloc && e.Kind != trace.Free && e.Kind != trace.Sync:
			continue
		}
		for _, h := range held {
			e.Time -= max(0, min(e.Time, h.end)-h.begin)
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b trace.Event) int { return int(a.Time - b.Time) })
	t.Events = events
	return trace.WriteFile(path, t)
}

type span struct{ begin, end int64 }

// without is what of the spans a lies in none of b. Both are in order of their beginnings.
func without(a, b []span) (rest []span) {
	for _, s := range a {
		for _, cut := range b {
			if cut.end <= s.begin || cut.begin >= s.end {
				continue
			}
			if cut.begin > s.begin {
				rest = append(rest, span{s.begin, cut.begin})
			}
			if s.begin = cut.end; s.begin >= s.end {
				break
			}
		}
		if s.begin < s.end {
			rest = append(rest, s)
		}
	}
	return rest
}
