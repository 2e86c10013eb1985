package torchsnap

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A note is one external annotation: a part of the program's time with a name.
type note struct {
	name     string
	device   int64
	from, to int64 // ns; to is 0 while it is open
}

// noteBytes is the memory of a note besides its name.
const noteBytes = 96

// notes are the annotations of a snapshot. The snapshot has their starts and ends; an end belongs
// to the last open start of the same name and device.
type notes struct {
	all  []note
	open map[note][]int // indices in all, by name and device
}

// note adds one entry of external_annotations. One without a time is left out: it has no place in the
// trace.
func (s *snapshot) note(r *record) error {
	n := &s.notes
	if _, ok := r.get(fTime); !ok {
		return nil
	}
	ns, err := r.time()
	if err != nil {
		return fmt.Errorf("annotation: %w", err)
	}
	key := note{name: s.text(r, fName)}
	if v, ok := r.get(fDevice); ok && v.kind == kInt {
		key.device = v.n
	}
	s.budget.Hold(int64(len(key.name)) + noteBytes)
	switch stage := s.text(r, fStage); stage {
	case "START":
		n.open[key] = append(n.open[key], len(n.all))
		n.all = append(n.all, note{name: key.name, device: key.device, from: ns})
	case "END":
		open := n.open[key]
		if len(open) == 0 { // the start was lost: it began before the window
			n.all = append(n.all, note{name: key.name, device: key.device, to: ns})
			return nil
		}
		n.all[open[len(open)-1]].to = ns
		n.open[key] = open[:len(open)-1]
	default:
		return fmt.Errorf("annotation: unknown stage %q", stage)
	}
	return nil
}

// marks returns the annotations as events sorted by time.
func (s *snapshot) marks(start int64) (marks []trace.Event) {
	for _, a := range s.notes.all {
		from := a.from
		if from == 0 {
			from = min(start, a.to)
		}
		length := max(0, time.Duration(a.to-from))
		marks = recording.Append(s.budget, marks, trace.Event{Time: from, Kind: trace.Mark, Duration: length, Aux: s.labels.Label(a.name)})
	}
	slices.SortStableFunc(marks, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	return marks
}
