package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/sim"
)

// A Limit is a number of bytes, or a factor of a workload's peak reachable bytes. The zero value
// is no limit.
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
	n, err := ParseBytes(text)
	if err != nil {
		return Limit{}, fmt.Errorf("limit %w, or a factor of the peak reachable bytes such as 1.5x", err)
	}
	return Limit{Bytes: n}, nil
}

// ParseCycle reads the length of every cycle, such as 10ms. It is at most an hour, so that sums do
// not overflow.
func ParseCycle(text string) (sim.Cost, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		return sim.Cost{}, fmt.Errorf("cycle %q: want the duration of a collection up to 1h, such as 10ms", text)
	}
	return sim.Fixed(d), nil
}

// ParseBytes reads a number of bytes above 0 with its unit, in upper or lower case: 8GiB, 100mb.
// It refuses a number without a unit, since 1.5 hardly means bytes.
func ParseBytes(text string) (int64, error) {
	size, err := pressure.ParseLimit(text)
	if err != nil {
		size, err = pressure.ParseLimit(strings.Replace(strings.ToUpper(text), "IB", "iB", 1))
	}
	switch {
	case text != "" && strings.Trim(text, "0123456789.") == "":
		return 0, fmt.Errorf("%q has no unit: want a size such as %sGiB", text, text)
	case err != nil || size.Bytes <= 0:
		return 0, fmt.Errorf("%q: want a size such as 8GiB", text)
	}
	return size.Bytes, nil
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
