package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A Machine says what cycles, waits and allocations cost on one machine under one
// app. Each element is switched off by its zero value. Times are those of a
// machine on which the program is held or waits; `replay calibrate` and `replay
// fit` measure them.
//
// A cycle goes through these phases. First, if the one before it has not been
// swept, it waits for that sweep. Then it takes Start until its mark begins; what
// the program drops until then is found dead. Then come Mark and Settle. Start and Mark
// depend on how long ago the last cycle ended: see After. While the program works, and
// so takes processor time from the collector, each phase takes Stretch times as long.
type Machine struct {
	About string `json:"about"` // the machine, the app's heap and the memory that was measured

	Start  time.Duration `json:"start_ns"`   // from asking for a cycle to the begin of its mark
	Mark   Linear        `json:"mark"`       // bytes: of the Go heap with pointers; objects: tracked
	Sweep  Linear        `json:"sweep"`      // after the mark, beside the program; bytes: of the Go heap with pointers
	Settle Linear        `json:"settle"`     // objects and bytes: given back
	Ladder time.Duration `json:"ladder_ns"`  // of the refusal ladder, beyond its cycle
	Map    Linear        `json:"map"`        // of an allocation that puts memory behind other addresses, where the Memory has a method Mapped; objects: chunks
	Heap   int64         `json:"heap_bytes"` // the app's Go heap with pointers

	After    Curve   `json:"after"`    // factor of Start and Mark by the time since the last cycle ended: a cycle soon after another finds warm caches
	Stretch  float64 `json:"stretch"`  // of a cycle while the program works: 1 or 0 = not at all, 2 = twice as long
	Slowdown float64 `json:"slowdown"` // of the program beside a cycle: 0 = none, 1 = half speed
	Sees     float64 `json:"sees"`     // slowdown that a collector learns of there, from goroutines that wait: see policy.Point
	Cores    int     `json:"cores"`    // GOMAXPROCS there, by which a collector expects its first cycle; 0: 1

	IdleGap time.Duration `json:"idle_gap_ns"` // a longer time between two events is no work of the program; 0: all is
	Alloc   Linear        `json:"alloc"`       // what the program takes for an allocation, beyond what was recorded
	Waits   bool          `json:"waits"`       // the ladder waits for the work that the device has queued, which it has if Elastic
	Elastic bool          `json:"elastic"`     // a pause shortens the next wait by up to its own length: the device works on meanwhile; by less if the recording says so, see Lead
	Noise   Noise         `json:"noise"`       // of the length of a cycle that does not stall
	Stall   Stall         `json:"stall"`       // of a cycle, in its mark

	Pace time.Duration `json:"pace_ns,omitempty"` // what the middle cycle of a steady program took when all this was measured: see [Machine.Times]; 0: unknown
}

// A Linear is a cost of so much, and so much more for each object and each GiB.
type Linear struct {
	Base      time.Duration `json:"base_ns"`
	PerObject float64       `json:"per_object_ns"`
	PerGiB    float64       `json:"per_gib_ns"`
}

// Of returns the cost for so many objects and bytes, in ns.
func (l *Linear) Of(objects, bytes int64) float64 {
	return float64(l.Base) + l.PerObject*float64(objects) + l.PerGiB*float64(bytes)/(1<<30)
}

// A Curve is a factor that depends on a time. It is given at some times, the
// shortest first. Between two of them it is even in the logarithm of the time; beyond them it
// stays. An empty one is 1.
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

// Noise is a distribution of factors: its quantiles, evenly spaced, the least
// first and the largest last. No quantiles are no noise.
type Noise []float64

func (n Noise) draw(r *rand.Rand) float64 {
	if len(n) < 2 {
		return 1
	}
	return draw(n, r)
}

// A Stall is what a cycle takes longer now and then because something else keeps it from
// its cores. That takes as long whatever the cycle takes, and however fast the machine is.
type Stall struct {
	Share  float64   `json:"share"`               // of the cycles, as most runs see it: 0 to 1
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

// MachineOf returns the machine on which the base world's costs hold: a cycle
// takes what c says, and a refusal takes the ladder.
func MachineOf(c Cost, ladder Ladder) *Machine {
	heap := int64(c.HeapMiB * (1 << 20))
	g := c.Of(0, 0)
	return &Machine{
		About: "the base world's costs", Heap: heap,
		Mark:     Linear{Base: c.Base, PerObject: c.PerTracked, PerGiB: float64(c.PerMiB) * 1024},
		Settle:   Linear{PerObject: c.PerFreed},
		Ladder:   max(0, ladder.Of(g)-g),
		Slowdown: c.Slowdown, Sees: c.Slowdown,
	}
}

// Cycle returns how long a cycle takes that finds the last one swept, with the
// program held or waiting, without noise and with the factor 1 of After.
func (m *Machine) Cycle(tracked, freed, bytes int64) time.Duration {
	return m.Start + time.Duration(m.Mark.Of(tracked, m.Heap)+m.Settle.Of(freed, bytes))
}

// Times returns a machine on which cycles and ladders take f times as long: m at another
// time, say, when it is busier.
func (m *Machine) Times(f float64) *Machine {
	x := *m
	x.Noise = slices.Clone(m.Noise)
	x.Pace = time.Duration(f * float64(m.Pace))
	x.Start, x.Ladder = time.Duration(f*float64(m.Start)), time.Duration(f*float64(m.Ladder))
	for _, l := range []*Linear{&x.Mark, &x.Sweep, &x.Settle} {
		l.Base = time.Duration(f * float64(l.Base))
		l.PerObject *= f
		l.PerGiB *= f
	}
	return &x
}

// Cost is the base world's cost of a cycle on m.
func (m *Machine) Cost() Cost {
	return Cost{Base: m.Cycle(0, 0, 0), PerTracked: m.Mark.PerObject, PerFreed: m.Settle.PerObject, Slowdown: m.Slowdown}
}
