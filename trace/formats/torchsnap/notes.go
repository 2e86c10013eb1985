package torchsnap

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/eagergc/eagergc/trace"
	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A noteKey tells external annotations apart: parts of the program's time with a name.
type noteKey struct {
	name   string
	device int64
}

// note adds one entry of external_annotations. They are the starts and ends of annotations; an end
// belongs to the last open start of the same name and device. An entry without a time is left out,
// because it has no place in the trace.
func (s *snapshot) note(r *record) error {
	if _, ok := r.get(fTime); !ok {
		return nil
	}
	ns, err := r.time()
	if err != nil {
		return fmt.Errorf("annotation: %w", err)
	}
	key := noteKey{name: s.text(r, fName)}
	if v, ok := r.get(fDevice); ok && v.kind == kInt {
		key.device = v.n
	}
	mark, open := trace.Event{Time: ns, Kind: trace.Mark, Aux: s.labels.Label(key.name)}, s.open[key]
	switch stage := s.text(r, fStage); {
	case stage == "START":
		s.open[key] = append(open, len(s.notes))
		s.budget.Hold(8)
	case stage == "END" && len(open) > 0:
		last := len(open) - 1
		start := &s.notes[open[last]]
		start.Duration = max(0, time.Duration(ns-start.Time))
		s.open[key] = open[:last]
		return nil
	case stage == "END": // the start was lost: it began before the window
		mark.Time, mark.Duration = 0, time.Duration(ns)
	default:
		return fmt.Errorf("annotation: unknown stage %q", stage)
	}
	s.notes = recording.Append(s.budget, s.notes, mark)
	return nil
}

// marks returns the annotations as events sorted by time.
func (s *snapshot) marks(start int64) []trace.Event {
	for i := range s.notes {
		if e := &s.notes[i]; e.Time == 0 {
			e.Time = min(start, int64(e.Duration))
			e.Duration -= time.Duration(e.Time)
		}
	}
	slices.SortStableFunc(s.notes, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	return s.notes
}
