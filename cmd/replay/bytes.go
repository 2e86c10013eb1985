package main

import (
	"fmt"

	"github.com/eagergc/eagergc/pressure"
)

// formatBytes writes n in the IEC unit that suits it, as 1.50 GiB.
func formatBytes(n int64) string { return pressure.Bytes(n).String() }

// parseBytes reads a number of bytes with the units of [pressure.ParseLimit].
func parseBytes(text string) (int64, error) {
	l, err := pressure.ParseLimit(text)
	switch {
	case err != nil:
		return 0, err
	case l.Percent > 0 || l.Bytes == 0:
		return 0, fmt.Errorf("%q is not a number of bytes", text)
	}
	return l.Bytes, nil
}
