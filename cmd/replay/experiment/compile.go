package experiment

import (
	"errors"

	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// ErrNoAllocations reports a recording without allocations.
var ErrNoAllocations = errors.New("there are no allocations in it, so it cannot be replayed: was the profile made with profile_memory=True? Its waits can be added to a memory snapshot: replay import SNAPSHOT --sync PROFILE")

// Compile prepares a recording for replays, in the space in which it allocates most.
func Compile(t *trace.Trace) (*sim.Workload, error) {
	for _, e := range t.Events {
		if e.Kind == trace.Alloc {
			return sim.Compile(t, sim.SpaceOf(t))
		}
	}
	return nil, ErrNoAllocations
}
