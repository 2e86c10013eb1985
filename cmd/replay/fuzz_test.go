package main

import (
	"math"
	"testing"
)

// FuzzArguments gives every reader of an argument the same text: none panics,
// and what is accepted means something.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		"max_pause<=20ms", "geomean exposed_pause<=0.5x", "peak_live_bytes<1GiB", "collections==NaN", "exposed_pause<=Infx",
		"1.5x", "8GiB", "1.5x,2x,4x", "10ms", "-1ns", "0", "50%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseCondition(text); err == nil && (math.IsNaN(c.value) || math.IsInf(c.value, 0)) {
			t.Fatalf("condition %q is a bound of %v", text, c.value)
		}
		limits, err := parseEach(text, parseLimit)
		for _, l := range limits {
			if l.factor <= 0 == (l.bytes <= 0) {
				t.Fatalf("limit %q is %+v", text, l)
			}
			if again, err := parseLimit(l.String()); err != nil || again != l {
				t.Fatalf("limit %q prints as %q, which reads as %+v, %v", text, l, again, err)
			}
		}
		if err != nil && limits != nil {
			t.Fatalf("limits %q: %v with error %v", text, limits, err)
		}
		if cost, err := parseCycle(text); err == nil && cost.Base < 0 {
			t.Fatalf("cycle %q takes %v", text, cost.Base)
		}
		if n, err := parseBytes(text); err == nil && n < 0 {
			t.Fatalf("%q is %d bytes", text, n)
		}
		if n, err := parseRate(text); err == nil && n < 0 {
			t.Fatalf("rate %q is %d", text, n)
		}
	})
}
