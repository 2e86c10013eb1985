package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A Limit is a number of bytes, or a factor of the peak reachable bytes of the
// workload that it is applied to. The zero value is no limit at all.
type Limit struct {
	Factor float64 // 0: Bytes counts
	Bytes  int64
}

// ParseLimit reads a factor such as 1.5x, or a size such as 8GiB.
func ParseLimit(text string) (Limit, error) {
	if digits, ok := strings.CutSuffix(text, "x"); ok {
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(f > 0 && f <= 1e6) {
			return Limit{}, fmt.Errorf("limit %q: want a factor of the peak reachable bytes above 0x, such as 1.5x", text)
		}
		return Limit{Factor: f}, nil
	}
	size, err := pressure.ParseLimit(text)
	if err != nil || size.Bytes <= 0 {
		return Limit{}, fmt.Errorf("limit %q: want a size such as 8GiB or a factor of the peak reachable bytes such as 1.5x", text)
	}
	return Limit{Bytes: size.Bytes}, nil
}

// Of returns the limit in bytes for w.
func (l Limit) Of(w *sim.Workload) int64 {
	if l.Factor == 0 {
		return l.Bytes
	}
	return max(1, int64(math.Floor(l.Factor*float64(w.PeakReachable))))
}

// String returns the form that [ParseLimit] reads.
func (l Limit) String() string {
	if l.Factor == 0 {
		return pressure.Limit{Bytes: l.Bytes}.String()
	}
	return strconv.FormatFloat(l.Factor, 'g', -1, 64) + "x"
}
