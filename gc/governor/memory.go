package governor

import (
	"math"

	"github.com/eagergc/eagergc/pressure"
)

// A Reading is the state of a memory at one moment, in bytes.
type Reading struct {
	Live      int64 // handed out and not given back
	Returning int64 // given back by a cycle that has not settled yet; the policy counts them as live
	Reserved  int64 // taken from the upstream
	Limit     int64 // 0 = no known limit
	Allocated int64 // allocated in all, from the start
}

// A Memory is memory with a budget of its own. The shell sets its reading before each call.
type Memory struct {
	Reading
	Space pressure.Space
	Soft  bool  // the limit is a goal: callers are never held for a whole cycle
	Gauge bool  // other code counts and frees the memory; a [Gauge] rations its cycles
	Freed int64 // bytes that the reported cycle gave back; the shell sets it before Settled and Natural

	Wake int64 // ask at an allocation once live + request reaches this
	Rest Rest  // do not ask at an allocation before this is over

	kept      int64 // live when the last cycle had settled
	allocated int64 // Allocated at that time
	wanted    int64 // least live + request that did not fit since then; 0 = all have fitted
	futile    int   // cycles in a row that freed little
	crowded   int64 // live bytes from which on a refusal asks for a cycle
}

// Kept returns the bytes that were live when the last cycle had settled.
func (m *Memory) Kept() int64 { return m.kept }

// Fell notes that a gauge has fallen since the last cycle, so that fewer bytes are live than the
// cycle left.
func (m *Memory) Fell(live int64) { m.kept = min(m.kept, live) }

// rebase takes the reading as the state after a cycle.
func (m *Memory) rebase() { m.kept, m.allocated = m.Live, m.Allocated }

// isOneWith reports whether m and other are parts of one memory. Libraries count some of the host's
// memory, and gauges read the rest. The policy sees one memory that has grown by as much as the part
// that grew most. The sum would hide garbage: memory that an allocator keeps shows up in the gauge.
func (m *Memory) isOneWith(other *Memory) bool {
	part := func(m *Memory) bool { return (m.Soft || m.Gauge) && m.Space == pressure.Host }
	return m == other || part(m) && part(other)
}

// shown returns the memory that m is a part of, as the policy sees it, and the bytes that the last
// cycle left in it. Its headroom is that of the part with the least headroom.
func (g *Governor) shown(m *Memory) (s pressure.Sample, kept int64) {
	live := m.Live + m.Returning
	s = pressure.Sample{Space: m.Space, Live: live, Reserved: max(m.Reserved, live), Limit: m.Limit}
	headroom := int64(math.MaxInt64)
	for _, x := range g.memories {
		if !x.isOneWith(m) {
			continue
		}
		kept += x.kept
		if x != m {
			s.Live += x.kept
			s.Reserved += x.kept
		}
		if x.Limit > 0 {
			headroom = min(headroom, x.Limit-x.Live-x.Returning)
		}
	}
	if headroom < math.MaxInt64 {
		s.Limit = max(1, s.Live+headroom)
	}
	return s, kept
}

// MostPressed returns the memory under most pressure, or nil if the governor has no memory. A
// cycle that the policy did not ask for is taken to be for this memory. Among equals, and among
// the parts of one memory, it returns the one that has grown most since the last cycle. The request
// counts as growth of the memory that asks; asks may be nil.
func (g *Governor) MostPressed(asks *Memory, request int64) (top *Memory) {
	if len(g.memories) == 1 {
		return g.memories[0]
	}
	var highest float64
	var most int64
	for _, m := range g.memories {
		s, _ := g.shown(m)
		at, growth := s.Pressure(), m.Live+m.Returning-m.kept
		if m == asks {
			growth += request
		}
		if top == nil || at > highest || at == highest && growth > most {
			top, highest, most = m, at, growth
		}
	}
	return top
}

// wakeAt sets the level at which each memory asks again. A memory asks at the pressure that top
// has with wake bytes live. Parts of one memory ask once they have grown as much since the last
// cycle. Below that pressure the policy need not be asked, because it sees only the memory under
// most pressure.
func (g *Governor) wakeAt(wake int64, top *Memory) {
	if len(g.memories) == 1 {
		top.Wake = wake
		return
	}
	grows, limit := wake > 0 && wake < math.MaxInt64, g.Asked.Sample.Limit
	for _, m := range g.memories {
		m.Wake = wake
		if !grows {
			continue
		}
		s, kept := g.shown(m)
		if !m.isOneWith(top) && limit > 0 {
			m.Wake = math.MaxInt64 / 2 // without a limit it is never under most pressure
			if s.Limit > 0 {
				m.Wake = int64(min(float64(wake)/float64(limit)*float64(s.Limit), math.MaxInt64/2))
			}
		}
		m.Wake += m.kept - kept // 0 or less: ask at every allocation
	}
}
