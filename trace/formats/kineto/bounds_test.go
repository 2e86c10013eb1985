package kineto

import (
	"strings"
	"testing"
)

// A string is read up to its bound.
func TestLongString(t *testing.T) {
	for n, ok := range map[int]bool{maxString: true, maxString + 1: false} {
		_, err := newScanner(strings.NewReader(`"` + strings.Repeat("x", n) + `"`)).text()
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
