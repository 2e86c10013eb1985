package gc

import (
	"testing"
	"time"
)

// A lookedAt is a pacer that is looked at after each answer.
type lookedAt struct {
	*Pacer
	look func(Point, Outlook)
}

func (w *lookedAt) Decide(at Point) Decision {
	d := w.Pacer.Decide(at)
	w.look(at, w.Outlook(at))
	return d
}

// TestOutlookIsThePlan: in a loop that is known, the place at which the next cycle
// starts is the one of least cost, headroom ends at the last place and not before, and
// a cycle that starts at a place frees what was foreseen there.
func TestOutlookIsThePlan(t *testing.T) {
	l := newLoop("pacer", 200*MB)
	seen := 0
	l.w.policy = &lookedAt{MustParse("pacer").New().(*Pacer), func(at Point, o Outlook) {
		if l.step < 50 || len(o.Places) == 0 {
			return
		}
		seen++
		last := len(o.Places) - 1
		for i, x := range o.Places {
			if o.Cost(i) < o.Cost(o.Chosen)-1 {
				t.Fatalf("step %d: place %d costs %.0f ns, the chosen one, %d, %.0f", l.step, i, o.Cost(i), o.Chosen, o.Cost(o.Chosen))
			}
			if i > 0 && (x.Live > 200*MB) != (i == last) {
				t.Fatalf("step %d: %d bytes live at place %d of %d", l.step, x.Live, i, last)
			}
		}
		if first := o.Places[0]; first.Time != at.Now || first.Live != granted(at) {
			t.Fatalf("step %d: %+v at %v with %d bytes", l.step, first, at.Now, granted(at))
		}
	}}
	l.run(100)
	if seen < 200 {
		t.Errorf("%d outlooks", seen)
	}
}

// TestOutlookOfTheUnknown: without a match there are no places.
func TestOutlookOfTheUnknown(t *testing.T) {
	p := MustParse("pacer").New().(*Pacer)
	at := Point{Now: time.Second, Request: MB, Cost: ms}
	at.Sample.Limit = GB
	p.Decide(at)
	if o := p.Outlook(at); len(o.Places) > 0 {
		t.Errorf("%+v", o)
	}
}
