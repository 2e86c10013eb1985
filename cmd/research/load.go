package main

import (
	"fmt"
	"slices"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats"
	"github.com/eagergc/eagergc/trace/formats/samples"
)

// load reads recordings. The name all stands for all built-in ones.
func load(names []string) (all []*trace.Trace, err error) {
	if i := slices.Index(names, "all"); i >= 0 {
		names = slices.Concat(names[:i], samples.All(), names[i+1:])
	}
	for _, name := range names {
		read := samples.Open
		if !slices.Contains(samples.All(), name) {
			read = formats.Opener{Memory: 2 << 30}.Open
		}
		t, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// compile prepares recordings for replays. Each is replayed in the space in which it allocates
// most.
func compile(programs []*trace.Trace) (loads []*sim.Workload, err error) {
	for _, p := range programs {
		w, err := experiment.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		loads = append(loads, w)
	}
	return loads, nil
}

// eventsOf returns the events that a replay uses. The first one has time 0.
func eventsOf(t *trace.Trace) []trace.Event {
	var out []trace.Event
	space, start := sim.SpaceOf(t), int64(0)
	for _, e := range t.Events {
		switch e.Kind {
		case trace.Alloc, trace.Drop, trace.Free:
			if e.Space != space {
				continue
			}
		case trace.Sync:
		default:
			continue
		}
		if len(out) == 0 {
			start = e.Time
		}
		e.Time -= start
		out = append(out, e)
	}
	return out
}
