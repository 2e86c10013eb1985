package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Cost models how long one cycle of the Go collector takes:
//
//	g = Base + PerMiB x HeapMiB + PerTracked x tracked + PerFreed x freed
//
// Tracked is the number of objects that the collector knows when the cycle starts,
// freed is how many of them it finds dead. The zero value is free. The cost of
// Go's collector comes from the pointers on the Go heap and not from the bytes
// outside it, so that no term counts those bytes. `replay calibrate` measures the
// coefficients.
type Cost struct {
	Base       time.Duration `json:"base_ns"`
	PerMiB     time.Duration `json:"per_heap_mib_ns"` // per MiB of pointerful Go heap
	HeapMiB    float64       `json:"heap_mib"`        // the app's pointerful Go heap
	PerTracked float64       `json:"per_tracked_ns"`  // ns per tracked object
	PerFreed   float64       `json:"per_freed_ns"`    // ns per object freed
	Slowdown   float64       `json:"slowdown"`        // of the program beside an overlapped cycle: 0 with an idle core, 1 = half speed
}

// Fixed is the cost model in which every cycle takes g.
func Fixed(g time.Duration) Cost { return Cost{Base: g} }

// Of returns the length of a cycle with the given numbers of objects.
func (c *Cost) Of(tracked, freed int64) time.Duration {
	if c.PerTracked == 0 && c.PerFreed == 0 && c.HeapMiB == 0 {
		return c.Base
	}
	ns := float64(c.PerMiB)*c.HeapMiB + c.PerTracked*float64(tracked) + c.PerFreed*float64(freed)
	return c.Base + time.Duration(math.Round(ns))
}

// A Ladder is how long the refusal ladder holds the program: Fixed if it is
// not zero, else Factor cycles. The zero value is free.
type Ladder struct {
	Fixed  time.Duration
	Factor float64
}

// Of returns the ladder's length where a cycle takes g.
func (l Ladder) Of(g time.Duration) time.Duration {
	if l.Fixed != 0 {
		return l.Fixed
	}
	return time.Duration(l.Factor * float64(g))
}

// String returns the form that [ParseLadder] reads: 2x or 20ms.
func (l Ladder) String() string {
	if l.Fixed != 0 {
		return l.Fixed.String()
	}
	return strconv.FormatFloat(l.Factor, 'g', -1, 64) + "x"
}

// ParseLadder reads a duration (20ms) or a multiple of the cycle (2x).
func ParseLadder(text string) (Ladder, error) {
	if digits, ok := strings.CutSuffix(text, "x"); ok {
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(f >= 0 && f <= 1e6) {
			return Ladder{}, fmt.Errorf("sim: ladder %q: want a factor from 0x to 1000000x", text)
		}
		return Ladder{Factor: f}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return Ladder{}, fmt.Errorf("sim: ladder %q: want a duration like 20ms or a multiple of the cycle like 2x", text)
	}
	return Ladder{Fixed: d}, nil
}
