package view

import (
	"strconv"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// Bytes writes n in the IEC unit that suits it, as 1.50 GiB.
func Bytes(n int64) string { return pressure.Bytes(n).String() }

// Duration writes d with three significant digits: 880ms, 1.54s.
func Duration(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}}
	for _, u := range units {
		if d >= u.size {
			return Three(float64(d)/float64(u.size)) + u.name
		}
	}
	if d == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}

// Three writes v with three significant digits and no exponent.
func Three(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Percent writes a share as a percentage.
func Percent(share float64) string { return Three(100*share) + "%" }

// Count writes n with its thousands apart: 160,000.
func Count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Plural writes n of something.
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return Count(n) + " " + what
}
