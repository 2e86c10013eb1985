package experiment

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eagergc/eagergc/sim"
)

// The MMU is the least share of any window that the program was not held: it is compared with the
// definition, over every window of whole ns.
func TestMMUIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l sim.Log
		var held []int // 1 for each ns that the program was held
		ns := func() int { return rapid.IntRange(0, 9).Draw(t, "ns") }
		for range rapid.IntRange(0, 6).Draw(t, "pauses") {
			gap, length := ns(), ns()
			held = append(held, slices.Repeat([]int{0}, gap)...)
			l.Pauses = append(l.Pauses, sim.Pause{At: time.Duration(len(held)), Length: time.Duration(length)})
			held = append(held, slices.Repeat([]int{1}, length)...)
		}
		held = append(held, slices.Repeat([]int{0}, ns())...)
		w := 3 * ns()
		got := MMU(&l, time.Duration(len(held)), []time.Duration{time.Duration(w)})[0]
		if w = min(w, len(held)); w == 0 {
			return
		}
		most := 0
		for i := 0; i+w <= len(held); i++ {
			n := 0
			for _, h := range held[i : i+w] {
				n += h
			}
			most = max(most, n)
		}
		if want := 1 - float64(most)/float64(w); got != want {
			t.Fatalf("window %d: %v, want %v", w, got, want)
		}
	})
}

// A mean over nothing, or with a missing result, is NaN.
func TestMeans(t *testing.T) {
	none, some := new(Outcome), &Outcome{Result: sim.Result{Span: 10, Elapsed: 15, GCBusy: 6}, Host: 4}
	missing := &Outcome{Err: sim.ErrNoSchedule}
	one := func(*Outcome) float64 { return 1 }
	for i, x := range []struct{ got, want float64 }{
		{GeometricMean([]float64{1, 4}), 2}, {GeometricMean(nil), math.NaN()},
		{Mean([]*Outcome{some}, one), 1}, {Mean([]*Outcome{some, missing}, one), math.NaN()},
		{some.WallLBO(), 1.5}, {some.CPULBO(), 2.5}, {none.WallLBO(), 0}, {none.CPULBO(), 0},
	} {
		if math.Abs(x.got-x.want) > 1e-12 || math.IsNaN(x.got) != math.IsNaN(x.want) {
			t.Errorf("%d: %v, want %v", i, x.got, x.want)
		}
	}
}

// A machine file is read, and an invalid one is refused with its place.
func TestReadMachine(t *testing.T) {
	for text, want := range map[string]string{
		`{"about": "x", "mark": {"base_ns": 5}, "noise": [0.5, 1], "after":[{"at_ns":1,"factor":1},{"at_ns":2,"factor":1}]}`: "",
		`{"start_ns": 5} {}`:           "byte 16: more than one object",
		`{"start_ns": -5}`:             "start_ns: negative: -5",
		`{"mark": {"per_gib_ns": -5}}`: "per_gib_ns",
		`{"noise": [2, 1]}`:            "the least first", `{"noise": [1]}`: "two or more",
		`{"bass_ns": 5}`: "unknown field", `{"start_ns": `: "byte ",
		`{"after":[{"at_ns":0,"factor":1}]}`: "after", `{"after":[{"at_ns":2,"factor":1},{"at_ns":2,"factor":1}]}`: "after", `{"after":[{"at_ns":2,"factor":-1}]}`: "after",
		`{"stall":{"share":1.1,"length_ns":[1,2]}}`: "stall", `{"stall":{"share":0.1,"length_ns":[1]}}`: "stall", `{"stall":{"share":0.1,"length_ns":[2,1]}}`: "stall", `{"stall":{"share":-1}}`: "stall",
	} {
		m, err := ReadMachine(strings.NewReader(text))
		switch {
		case want == "" && (err != nil || m.Mark.Base != 5):
			t.Errorf("%s is %+v, %v", text, m, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
}
