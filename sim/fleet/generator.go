package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/synthetic"
)

// A Generator makes up the recordings of a fleet, to try what a fleet does. A job is a
// part of one of its bases, or a mixture of two: from another moment on, with other
// sizes and at another pace. Job i of a seed is always the same.
type Generator struct {
	Seed   uint64
	Events int            // of a recording, about; each has between half and twice as many
	Bases  []*trace.Trace // recordings and synthetic programs; at least one. They are not changed
}

// Trace makes job i.
func (g *Generator) Trace(i int) *trace.Trace {
	m := &mixer{Rand: rand.New(rand.NewPCG(g.Seed, uint64(i)))}
	n, parts := int(m.between(float64(g.Events)/2, 2*float64(g.Events))), 1+m.IntN(2)
	for range parts {
		start := m.now
		m.cut(g.Bases[m.IntN(len(g.Bases))], n/parts, m.between(1.0/8, 8), m.between(1.0/4, 4))
		if m.IntN(2) == 0 {
			m.now = start // the next part runs beside this one, not after it
		}
	}
	return m.trace(fmt.Sprintf("job-%06d", i))
}

// probe is the recording by which a Mapper knows what the rules of a policy do. It has
// phases of all shapes of program, so that a change of a rule shows.
var probe = sync.OnceValue(func() *sim.Workload {
	m := &mixer{Rand: rand.New(rand.NewPCG(1, 1))}
	for _, shape := range synthetic.Shapes() {
		t, err := synthetic.Open(shape, 1)
		if err != nil {
			panic(err) // it is a shape
		}
		m.cut(t, 250, 1, 1)
	}
	w, err := sim.Compile(m.trace("probe"), pressure.Device(0))
	if err != nil {
		panic(err) // it is the same each time
	}
	return w
})

// A mixer writes the events of a job.
type mixer struct {
	*rand.Rand
	events []trace.Event
	now    int64 // ns
	ids    uint64
}

// between draws a number, every factor of two as likely.
func (m *mixer) between(low, high float64) float64 {
	return low * math.Exp(m.Float64()*math.Log(high/low))
}

func (m *mixer) alloc(bytes float64) (id uint64) {
	m.ids++
	m.events = append(m.events, trace.Event{Time: m.now, Kind: trace.Alloc, Space: pressure.Device(0), ID: m.ids, Bytes: max(1, int64(bytes))})
	return m.ids
}

// cut takes about n events of a recording, from some moment on. What is reachable then
// and dropped later is allocated at the start; what stays is one object.
func (m *mixer) cut(base *trace.Trace, n int, sizes, pace float64) {
	events := only(base.Events, sim.SpaceOf(base))
	from := m.IntN(max(1, len(events)-n))
	part := events[from:min(len(events), from+n)]
	ids := m.inherit(events[:from], part, sizes)
	start := m.now
	for _, e := range part {
		m.now = start + int64(pace*float64(e.Time-part[0].Time))
		switch e.Kind {
		case trace.Alloc:
			ids[e.ID] = m.alloc(sizes * float64(e.Bytes))
		case trace.Sync:
			m.events = append(m.events, trace.Event{Time: m.now, Kind: trace.Sync, Duration: time.Duration(pace * float64(e.Duration))})
		default:
			if id, ok := ids[e.ID]; ok {
				m.events = append(m.events, trace.Event{Time: m.now, Kind: trace.Drop, Space: pressure.Device(0), ID: id})
				delete(ids, e.ID)
			}
		}
	}
}

// inherit allocates what is reachable when a part begins, and returns the new numbers of
// what the part drops.
func (m *mixer) inherit(before, part []trace.Event, sizes float64) map[uint64]uint64 {
	there, dropped := make(map[uint64]trace.Event), make(map[uint64]bool)
	for _, e := range before {
		switch e.Kind {
		case trace.Alloc:
			there[e.ID] = e
		case trace.Drop, trace.Free:
			delete(there, e.ID)
		}
	}
	for _, e := range part {
		if e.Kind == trace.Drop || e.Kind == trace.Free {
			dropped[e.ID] = true
		}
	}
	ids := make(map[uint64]uint64)
	var stays float64
	for _, e := range slices.SortedFunc(maps.Values(there), func(a, b trace.Event) int { return cmp.Compare(a.ID, b.ID) }) {
		if dropped[e.ID] {
			ids[e.ID] = m.alloc(sizes * float64(e.Bytes))
		} else {
			stays += sizes * float64(e.Bytes)
		}
	}
	if stays > 0 {
		m.alloc(stays)
	}
	return ids
}

// trace returns the events in order.
func (m *mixer) trace(name string) *trace.Trace {
	slices.SortStableFunc(m.events, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	trace.SetSizes(m.events)
	return &trace.Trace{Name: name, Events: m.events}
}

// only returns the events by which memory of a space changes, and the waits.
func only(events []trace.Event, space pressure.Space) (some []trace.Event) {
	for _, e := range events {
		if e.Kind == trace.Sync || e.Space == space && (e.Kind == trace.Alloc || e.Kind == trace.Drop || e.Kind == trace.Free) {
			some = append(some, e)
		}
	}
	return some
}
