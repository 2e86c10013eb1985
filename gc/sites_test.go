package gc

import (
	"reflect"
	"testing"
)

// here are the slots that are tracked.
type here map[Slot]bool

func (h here) has(s Slot) bool         { return h[s] }
func (h here) release(Slot) bool       { panic("not called") }
func (h here) resize(Slot, int64) bool { panic("not called") }

// TestSurvivorsAge: a sample survives once it has outlived 16 cycles, counted from when it was chosen; a site is as old as its oldest,
// and holds what its samples that have survived stand for.
func TestSurvivorsAge(t *testing.T) {
	in := here{1: true, 2: true, 3: true, 4: true, 5: true}
	s := samples{all: []sample{{in, 1, "a", 10, 100}, {in, 2, "a", 20, 103}, {in, 3, "b", 25, 101}, {in, 4, "b", 1, 90}, {in, 5, "c", 99, 110}}}
	delete(in, 4) // is dead
	for _, step := range []struct {
		now  uint64
		want []Survivor
	}{
		{115, nil},
		{116, []Survivor{{"a", 10, 1, 16}}},
		{117, []Survivor{{"b", 25, 1, 16}, {"a", 10, 1, 17}}},
		{119, []Survivor{{"a", 30, 2, 19}, {"b", 25, 1, 18}}},
		{126, []Survivor{{"c", 99, 1, 16}, {"a", 30, 2, 26}, {"b", 25, 1, 25}}},
	} {
		if got := s.survivors(step.now); !reflect.DeepEqual(got, step.want) {
			t.Errorf("after cycle %d: %+v, want %+v", step.now, got, step.want)
		}
	}
	if len(s.all) != 4 {
		t.Errorf("%d samples are kept of 4 that are alive", len(s.all))
	}
}
