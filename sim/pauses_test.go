package sim

import (
	"testing"
	"time"
)

// TestMMUIsTheLeast compares with the definition: every window of whole ns.
func TestMMUIsTheLeast(t *testing.T) {
	check(t, 100, func(t *random) {
		var l Log
		now := time.Duration(0)
		ns := func() time.Duration { return time.Duration(between(t, 0, 9)) }
		held := []bool{}
		for range between(t, 0, 6) {
			gap, length := ns(), ns()
			l.Pauses = append(l.Pauses, Pause{At: now + gap, Length: length})
			now += gap + length
			held = append(append(held, make([]bool, gap)...), trues(int(length))...)
		}
		held = append(held, make([]bool, ns())...)
		w := int(3 * ns())
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
