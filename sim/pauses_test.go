package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMMUIsTheLeast compares with the definition: every window of whole ns.
func TestMMUIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Log
		now := time.Duration(0)
		ns := func(most int64, what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, most).Draw(t, what))
		}
		held := []bool{}
		for range rapid.IntRange(0, 6).Draw(t, "pauses") {
			gap, length := ns(9, "gap"), ns(9, "length")
			l.Pauses = append(l.Pauses, Pause{At: now + gap, Length: length})
			now += gap + length
			held = append(append(held, make([]bool, gap)...), trues(int(length))...)
		}
		held = append(held, make([]bool, ns(9, "rest"))...)
		w := int(ns(30, "window"))
		got := l.MMU(time.Duration(len(held)), []time.Duration{time.Duration(w)})[0]
		if w = min(w, len(held)); w == 0 {
			return
		}
		most := 0
		for i := 0; i+w <= len(held); i++ {
			n := 0
			for _, h := range held[i : i+w] {
				if h {
					n++
				}
			}
			most = max(most, n)
		}
		if want := 1 - float64(most)/float64(w); got != want {
			t.Fatalf("window %d: %v, want %v", w, got, want)
		}
	})
}

func trues(n int) []bool {
	all := make([]bool, n)
	for i := range all {
		all[i] = true
	}
	return all
}
