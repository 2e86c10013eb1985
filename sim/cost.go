package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Cost is what a cycle of the Go collector costs in the base world. The zero value is free. The
// world of a [Machine] also counts objects and the Go heap.
type Cost struct {
	Base     time.Duration // length of a cycle
	Slowdown float64       // of the program beside an overlapped cycle: 0 with an idle core, 1 = half speed
}

// Fixed is the cost of cycles that take g and slow nothing.
func Fixed(g time.Duration) Cost { return Cost{Base: g} }

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
