package governor

import (
	"cmp"
	"math"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A Rest is a time in which allocations of a memory ask for no cycle. It ends early if live bytes
// fall below Low or rise above High, because the memory is then no longer the one that was judged.
type Rest struct {
	Until time.Duration
	Low   int64 // live bytes
	High  int64 // live bytes
	Why   Why
}

// Over reports whether the rest is over for a memory with the given live bytes.
func (r *Rest) Over(at time.Duration, live int64) bool {
	return at >= r.Until || live < r.Low || live > r.High
}

// A Why is the reason of a rest.
type Why uint8

const (
	Capped  Why = iota // cycles have used up their share of the processors
	Futile             // cycles freed too little
	Crowded            // nearly all of the limit is reachable
)

// After n cycles in a row that freed little, a memory rests for 8 x 2^n times the work of the last
// one. So such cycles take less than 1/8 of the processors, and less with each one in a row.
const (
	littleShare = 1.0 / 64 // of the bytes live before a cycle: less is little
	restFactor  = 8
	restMax     = 2 * time.Minute // Go itself collects after this time (forcegcperiod in runtime/proc.go)
	restGrowth  = 16 << 20        // bytes of growth, beyond twice the bytes kept, that always end a rest
)

// If more than 7/8 of the limit of a soft memory is reachable, the room that a cycle wins is used up
// soon. Cycles then take at most a twentieth of the time.
const (
	crowdedShare = 7.0 / 8
	crowdedRest  = 20
)

// rests sets the rest of each memory after a settled cycle for m. Kept is the number of bytes that
// were live before the cycle and still are.
func (g *Governor) rests(c *policy.Cycle, m *Memory, at time.Duration, kept int64) {
	if g.caps.Cycles >= 1 {
		return
	}
	natural := c.Trigger == policy.TriggerNatural // its yield is not known well, so it ends all rests
	for _, x := range g.memories {
		if natural {
			x.futile = 0
		}
		if natural || x.Rest.Why == Capped || x.Rest.Until <= g.next {
			x.Rest = Rest{Until: g.next, High: math.MaxInt64}
		}
	}
	if m == nil || natural {
		return
	}
	m.futile++
	if float64(c.Freed) >= littleShare*float64(kept+c.Freed) {
		m.futile = 0
	}
	r := Rest{Until: g.next, Low: m.kept - m.kept/8, High: 2*m.kept + restGrowth}
	work := cmp.Or(c.Work, c.Duration)
	if until := at + min(restMax, work*restFactor<<min(m.futile, 16)); m.futile > 0 && !m.Gauge && until > r.Until {
		r.Until, r.Why = until, Futile
	}
	if until := at + work*crowdedRest; m.Soft && c.Limit > 0 && float64(kept) > crowdedShare*float64(c.Limit) && until > r.Until {
		r.Until, r.Why = until, Crowded
	}
	m.Rest = r
}

// Climbs reports whether a refused allocation asks for a cycle. It is for memories that are not
// soft. After a cycle that made no room, it asks once an eighth of the limit has been added. A program
// that reaches more memory than its limit gains nothing from a cycle.
func (m *Memory) Climbs() bool { return m.Live >= m.crowded }

// Climbed reports whether the allocation fits after that cycle.
func (m *Memory) Climbed(fits bool) {
	m.crowded = 0
	if !fits {
		m.crowded = m.Live + m.Limit/8
	}
}
