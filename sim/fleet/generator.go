package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// A Generator makes up the recordings of a fleet, to try what a fleet does. Job i of a
// seed is always the same. Half of them are parts of recordings that exist: from another
// moment on, with other sizes, at another pace. The others are programs that do not exist,
// and mixtures of two.
type Generator struct {
	Seed   uint64
	Events int            // of a recording, about; each has between half and twice as many
	Bases  []*trace.Trace // recordings to cut parts from; none: all jobs are made up
}

// Trace makes job i.
func (g *Generator) Trace(i int) *trace.Trace {
	r := rand.New(rand.NewPCG(g.Seed, uint64(i)))
	p := &program{Rand: r}
	n := int(p.between(float64(g.Events)/2, 2*float64(g.Events)))
	if len(g.Bases) > 0 && r.IntN(2) == 0 {
		p.cut(g.Bases[r.IntN(len(g.Bases))], n)
	} else {
		parts := 1 + r.IntN(2)
		for range parts {
			start := p.now
			shapes[r.IntN(len(shapes))](p, n/parts, p.between(64<<10, 256<<20), time.Duration(p.between(10e3, 3e6)))
			if r.IntN(2) == 0 {
				p.now = start // the next part runs beside this one, not after it
			}
		}
	}
	return p.trace(fmt.Sprintf("job-%06d", i))
}

// cut takes about n events of a recording, from some moment on. What is reachable then
// and dropped later is allocated at the start; what stays is one object.
func (p *program) cut(base *trace.Trace, n int) {
	space := sim.SpaceOf(base)
	events := only(base.Events, space)
	from := p.IntN(max(1, len(events)-n))
	part := events[from:min(len(events), from+n)]
	sizes, paces := p.between(1.0/8, 8), p.between(1.0/4, 4)
	there := make(map[uint64]trace.Event)
	for _, e := range events[:from] {
		switch e.Kind {
		case trace.Alloc:
			there[e.ID] = e
		case trace.Drop, trace.Free:
			delete(there, e.ID)
		}
	}
	ids := make(map[uint64]uint64) // by those of the base
	size := func(bytes int64) float64 { return sizes * float64(bytes) }
	var stays float64
	dropped := make(map[uint64]bool)
	for _, e := range part {
		dropped[e.ID] = e.Kind != trace.Sync
	}
	for _, e := range slices.SortedFunc(maps.Values(there), func(a, b trace.Event) int { return cmp.Compare(a.ID, b.ID) }) {
		if dropped[e.ID] {
			ids[e.ID] = p.alloc(size(e.Bytes))
		} else {
			stays += size(e.Bytes)
		}
	}
	if stays > 0 {
		p.alloc(stays)
	}
	start := p.now
	for _, e := range part {
		p.now = start + int64(paces*float64(e.Time-part[0].Time))
		switch e.Kind {
		case trace.Alloc:
			ids[e.ID] = p.alloc(size(e.Bytes))
		case trace.Sync:
			p.events = append(p.events, trace.Event{Time: p.now, Kind: trace.Sync, Duration: time.Duration(paces * float64(e.Duration))})
		default:
			if id, ok := ids[e.ID]; ok {
				p.drop(p.now, id)
				delete(ids, e.ID)
			}
		}
	}
}

// only returns the events by which memory of a space changes, and the waits. Drops and
// frees are drops.
func only(events []trace.Event, space pressure.Space) (some []trace.Event) {
	for _, e := range events {
		switch {
		case e.Kind == trace.Sync:
			e.ID = 0
			some = append(some, e)
		case e.Space == space && (e.Kind == trace.Alloc || e.Kind == trace.Drop || e.Kind == trace.Free):
			some = append(some, e)
		}
	}
	return some
}
