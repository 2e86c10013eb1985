package chart

import (
	"math"
	"strconv"
	"time"
)

// Number writes v with three significant digits and no exponent: 0.25, 12.3, 4310.
func Number(v float64) string {
	digits := 2
	switch abs := math.Abs(v); {
	case abs >= 99.95:
		digits = 0
	case abs >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// Percent writes a share, such as 0.123, as 12.3%.
func Percent(share float64) string { return Number(100*share) + "%" }

// Duration writes d with three significant digits: 880ms, 1.54s.
func Duration(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if d >= u.size || d <= -u.size {
			return Number(float64(d)/float64(u.size)) + u.name
		}
	}
	if d == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}
