package experiment

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/sim"
)

// TestMMUIsTheLeast compares with the definition: every window of whole ns.
func TestMMUIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l sim.Log
		now := time.Duration(0)
		ns := func() time.Duration { return time.Duration(rapid.IntRange(0, 9).Draw(t, "ns")) }
		held := []bool{}
		for range rapid.IntRange(0, 6).Draw(t, "pauses") {
			gap, length := ns(), ns()
			l.Pauses = append(l.Pauses, sim.Pause{At: now + gap, Length: length})
			now += gap + length
			held = append(append(held, make([]bool, gap)...), trues(int(length))...)
		}
		held = append(held, make([]bool, ns())...)
		w := int(3 * ns())
		got := MMU(&l, time.Duration(len(held)), []time.Duration{time.Duration(w)})[0]
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

func TestMMU(t *testing.T) {
	l := &sim.Log{Pauses: []sim.Pause{{At: 100, Length: 50}, {At: 200, Length: 100}}}
	got := MMU(l, 1000, []time.Duration{50, 100, 200, 1000, 5000})
	// A window of 200 ns from 100 to 300 holds both pauses.
	want := []float64{0, 0, 1 - 150.0/200, 1 - 150.0/1000, 1 - 150.0/1000}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("MMU %v, want %v", got, want)
	}
}
