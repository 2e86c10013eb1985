package pressure

import (
	"fmt"
	"math"
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
