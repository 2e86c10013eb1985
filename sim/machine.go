package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A Machine holds the costs of cycles, waits and allocations on one machine under one app. The zero
// value of each element switches it off. `replay calibrate` measures a machine. Times are those
// while the program is held or waits.
//
// A cycle goes through these phases. It waits for the sweep of the last cycle. It takes Start until
// its mark begins; objects dropped until then are found dead. Then come Mark and Settle. The time
// since the last cycle changes Start and Mark: see After. While the program works, and so takes
// processor time from the collector, each phase takes Stretch times as long.
type Machine struct {
	About string `json:"about"` // the machine, the app's heap and the memory that was measured

	Start  time.Duration `json:"start_ns"`   // from asking for a cycle to the begin of its mark
	Mark   Linear        `json:"mark"`       // bytes: of the Go heap with pointers; objects: tracked
	Sweep  Linear        `json:"sweep"`      // after the mark, beside the program; bytes: of the Go heap with pointers
	Settle Linear        `json:"settle"`     // objects and bytes: given back
	Ladder time.Duration `json:"ladder_ns"`  // of the refusal ladder, beyond its cycle
	Map    Linear        `json:"map"`        // of an allocation that maps memory; objects: chunks mapped
	Heap   int64         `json:"heap_bytes"` // the app's Go heap with pointers

	After    Curve   `json:"after"`    // factor of Start and Mark by the time since the last cycle: caches cool down
	Stretch  float64 `json:"stretch"`  // of a cycle while the program works: 1 or 0 = not at all, 2 = twice as long
	Slowdown float64 `json:"slowdown"` // of the program beside a cycle: 0 = none, 1 = half speed
	Cores    int     `json:"cores"`    // GOMAXPROCS there; 0: 1

	IdleGap time.Duration `json:"idle_gap_ns"` // in a longer time between two events the program is idle; 0: never
	Alloc   Linear        `json:"alloc"`       // time of an allocation, beyond the recorded one
	Waits   bool          `json:"waits"`       // the ladder waits for the device's queue; needs Elastic
	Elastic bool          `json:"elastic"`     // the device works on in a pause, which shortens the next wait: see Runahead
	Noise   Noise         `json:"noise"`       // of the length of a cycle that does not stall
	Stall   Stall         `json:"stall"`       // of a cycle, in its mark

	// Work is the processor time of a cycle for each of Cores, as a share of its length. If it is 0,
	// which means not known, caps and rests do not apply.
	Work float64       `json:"work,omitempty"`
	Pace time.Duration `json:"pace_ns,omitempty"` // of a steady program's median cycle at the measurement; 0: unknown
}

// A Linear is a fixed cost and a cost for each object and each GiB.
type Linear struct {
	Base      time.Duration `json:"base_ns"`
	PerObject float64       `json:"per_object_ns"`
	PerGiB    float64       `json:"per_gib_ns"`
}

// Of returns the cost for a number of objects and bytes, in ns.
func (l *Linear) Of(objects, bytes int64) float64 {
	return float64(l.Base) + l.PerObject*float64(objects) + l.PerGiB*float64(bytes)/(1<<30)
}

// A Curve is a factor that depends on a time. It has points, the shortest time first. Between two
// points the factor is linear in the logarithm of the time. Outside them it is that of the nearest
// point. An empty curve is 1.
type Curve []CurvePoint

// A CurvePoint is the factor at one time.
type CurvePoint struct {
	At     time.Duration `json:"at_ns"`
	Factor float64       `json:"factor"`
}

// Of returns the factor at a time.
func (c Curve) Of(d time.Duration) float64 {
	i, found := slices.BinarySearchFunc(c, d, func(p CurvePoint, d time.Duration) int { return cmp.Compare(p.At, d) })
	switch {
	case len(c) == 0:
		return 1
	case found, i == 0:
		return c[i].Factor
	case i == len(c):
		return c[i-1].Factor
	}
	a, b := c[i-1], c[i]
	return a.Factor + (b.Factor-a.Factor)*math.Log(float64(d)/float64(a.At))/math.Log(float64(b.At)/float64(a.At))
}

// Noise is a distribution of factors: its quantiles, evenly spaced, the least first and the largest
// last. No quantiles are no noise.
type Noise []float64

func (n Noise) draw(r *rand.Rand) float64 {
	if len(n) < 2 {
		return 1
	}
	return draw(n, r)
}

// A Stall is the extra time of some cycles, which wait for their cores. It does not depend on the
// length of the cycle or the speed of the machine.
type Stall struct {
	Share  float64   `json:"share"`               // of the cycles that stall, in most runs: 0 to 1
	Length []float64 `json:"length_ns,omitempty"` // of one: two or more quantiles, evenly spaced, the least first
}

// draw returns how long a cycle stalls, in ns: mostly 0.
func (s *Stall) draw(r *rand.Rand) float64 {
	if s.Share == 0 || r.Float64() >= s.Share {
		return 0
	}
	return draw(s.Length, r)
}

// draw returns a value of a distribution that is given by two or more quantiles.
func draw(quantiles []float64, r *rand.Rand) float64 {
	at := r.Float64() * float64(len(quantiles)-1)
	i := int(at)
	return quantiles[i] + (at-float64(i))*(quantiles[i+1]-quantiles[i])
}

// MachineOf returns the machine with the base world's costs: those of c, and the ladder.
func MachineOf(c Cost, ladder Ladder) *Machine {
	return &Machine{
		About:    "the base world's costs",
		Mark:     Linear{Base: c.Base},
		Ladder:   max(0, ladder.Of(c.Base)-c.Base),
		Slowdown: c.Slowdown,
	}
}

// Cycle returns the length of a cycle that finds the last one swept. The program is held, and there
// is no noise and no effect of After.
func (m *Machine) Cycle(tracked, freed, bytes int64) time.Duration {
	return m.Start + time.Duration(m.Mark.Of(tracked, m.Heap)+m.Settle.Of(freed, bytes))
}

// Times returns a machine on which cycles and ladders take f times as long. It may be the same
// machine when it is busier.
func (m *Machine) Times(f float64) *Machine {
	x := *m
	x.Noise = slices.Clone(m.Noise)
	x.Pace = time.Duration(f * float64(m.Pace))
	x.Start, x.Ladder = time.Duration(f*float64(m.Start)), time.Duration(f*float64(m.Ladder))
	for _, l := range []*Linear{&x.Mark, &x.Sweep, &x.Settle} {
		*l = Linear{time.Duration(f * float64(l.Base)), f * l.PerObject, f * l.PerGiB}
	}
	return &x
}
