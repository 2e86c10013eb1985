package pressure

import (
	"fmt"
	"math"
	"strconv"
)

// Bytes is a number of bytes that prints in IEC units, as 1.50 GiB. It is the one form in which
// this project shows memory to people.
type Bytes int64

// String returns the number with three digits or so and its unit: "512 B", "1.50 GiB". Use [Limit]
// for a form that can be read back.
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
