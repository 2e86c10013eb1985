package live

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
	"github.com/eagergc/eagergc/trace"
)

// Scale returns a copy of t in which every size is divided by n and rounded up. It serves
// workloads that are too large for the machine. Sizes near the pool's granule of 512 bytes then
// weigh more than in t.
func Scale(t *trace.Trace, n int64) (*trace.Trace, error) {
	if n < 1 {
		return nil, fmt.Errorf("live: scale %d: want a number of 1 or more, to divide by", n)
	}
	scaled := *t
	scaled.Events = make([]trace.Event, len(t.Events))
	for i, e := range t.Events {
		switch e.Kind {
		case trace.Alloc, trace.Drop, trace.Free:
			e.Bytes = (e.Bytes + n - 1) / n
		}
		scaled.Events[i] = e
	}
	return &scaled, nil
}

// Head returns the part of t before time d, counted from its first event. 0 returns t. An object
// whose drop is cut off stays to the end.
func Head(t *trace.Trace, d time.Duration) *trace.Trace {
	if d == 0 || len(t.Events) == 0 {
		return t
	}
	end := t.Events[0].Time + int64(d)
	n, _ := slices.BinarySearchFunc(t.Events, end, func(e trace.Event, end int64) int { return cmp.Compare(e.Time, end) })
	head := *t
	head.Events = t.Events[:n:n]
	return &head
}

// A step is one event of a program: 24 bytes, no pointers.
type step struct {
	time int64 // ns from the first step
	arg  int64 // bytes, or ns of a wait or of the device's lead
	slot int32 // place in the table of objects, or number of a wait place
	kind trace.Kind
}

// A program is a workload in its executable form. An object has an entry in a table while it is
// reachable. The table is as small as possible, since Go's collector scans it.
type program struct {
	load   *sim.Workload
	steps  []step
	slots  int
	places []string
}

// compile checks one space of t and lays it out.
func compile(t *trace.Trace, space pressure.Space) (*program, error) {
	load, err := sim.Compile(t, space)
	if err != nil {
		return nil, err
	}
	p := &program{load: load}
	var (
		free   []int32
		slots  = make(map[uint64]int32) // of objects that are reachable
		places = make(map[uint32]int32) // by label
		start  = int64(-1)
	)
	for _, e := range t.Events {
		s := step{kind: e.Kind}
		switch e.Kind {
		case trace.Mark:
			if t.Label(e) != trace.AheadLabel {
				continue
			}
			s.arg = int64(e.Duration)
		case trace.Sync:
			n, ok := places[e.Aux]
			if !ok {
				n = int32(len(p.places))
				places[e.Aux] = n
				p.places = append(p.places, t.Label(e))
			}
			s.slot, s.arg = n, int64(e.Duration)
		case trace.Alloc, trace.Drop, trace.Free:
			if e.Space != space {
				continue
			}
			if e.Kind == trace.Alloc {
				if len(free) == 0 {
					free = append(free, int32(p.slots))
					p.slots++
				}
				s.slot, s.arg = free[len(free)-1], e.Bytes
				free = free[:len(free)-1]
				slots[e.ID] = s.slot
				break
			}
			n, ok := slots[e.ID]
			if !ok {
				continue // a free whose drop was seen
			}
			if e.Kind == trace.Free && e.Aux != trace.FreeExplicit {
				s.kind = trace.Drop
			}
			delete(slots, e.ID)
			free = append(free, n)
			s.slot = n
		default:
			continue
		}
		if start < 0 {
			start = e.Time
		}
		s.time = e.Time - start
		p.steps = append(p.steps, s)
	}
	return p, nil
}
