package pressure

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Bytes is a number of bytes that prints in IEC units, as 1.50 GiB. It is the
// one form in which this project shows memory to people.
type Bytes int64

// String returns the number with three digits or so and its unit: "512 B",
// "1.50 GiB". Use [Limit] for a form that can be read back.
func (b Bytes) String() string {
	const units = "KMGTPE"
	v, unit := float64(b), -1
	for math.Abs(v) >= 1023.995 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	if unit < 0 {
		return fmt.Sprintf("%d B", int64(b))
	}
	return fmt.Sprintf("%.2f %ciB", v, units[unit])
}

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

// Count writes n with its thousands apart: 160,000.
func Count[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(text) - 3; i > first; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
