package main

import (
	"fmt"
	"strconv"
	"strings"
)

var byteUnits = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// formatBytes writes n in the largest IEC unit that it reaches, with three
// significant digits.
func formatBytes(n int64) string {
	unit, v := 0, float64(n)
	for v >= 1024 && unit < len(byteUnits)-1 {
		v /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%dB", n)
	}
	return three(v) + byteUnits[unit]
}

// parseBytes reads a size in bytes, or with an IEC unit.
func parseBytes(text string) (int64, error) {
	scale := 1.0
	for i, u := range byteUnits[1:] {
		if digits, ok := strings.CutSuffix(text, u); ok {
			text, scale = digits, float64(int64(1)<<(10*(i+1)))
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v*scale < 1<<62) {
		return 0, fmt.Errorf("%q is no size", text)
	}
	return int64(v * scale), nil
}
