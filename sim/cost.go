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
//	g = Base + PerTracked x tracked + PerFreed x freed
//
// Tracked is the number of objects that the collector knows when the cycle starts, and freed the
// number of them that it finds dead. The zero value is free. No term counts the bytes outside the
// Go heap, because only pointers on the Go heap make a cycle longer.
type Cost struct {
	Base       time.Duration `json:"base_ns"`
	PerTracked float64       `json:"per_tracked_ns"` // ns per tracked object
	PerFreed   float64       `json:"per_freed_ns"`   // ns per object freed
	Slowdown   float64       `json:"slowdown"`       // of the program beside an overlapped cycle: 0 with an idle core, 1 = half speed
}

// Fixed is the cost model in which every cycle takes g.
func Fixed(g time.Duration) Cost { return Cost{Base: g} }

// Of returns the length of a cycle with the given numbers of objects.
func (c *Cost) Of(tracked, freed int64) time.Duration {
	if c.PerTracked == 0 && c.PerFreed == 0 {
		return c.Base
	}
	ns := c.PerTracked*float64(tracked) + c.PerFreed*float64(freed)
	return c.Base + time.Duration(math.Round(ns))
}

// A Ladder is how long the refusal ladder holds the program: Fixed if it is not zero, else Factor
// cycles. The zero value is free.
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
