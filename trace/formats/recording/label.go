package recording

import "github.com/eagergc/eagergc/trace"

// A Labeler adds texts to the Labels of a trace, each text once, and knows their
// numbers. It is for one goroutine at a time.
type Labeler struct {
	t      *trace.Trace
	index  map[string]uint32
	budget *Budget
}

// labelBytes is the memory of a label besides its text.
const labelBytes = 64

// NewLabeler returns a Labeler that adds to t.Labels, and counts the memory of the texts in b. It
// knows the texts that are already there.
func NewLabeler(t *trace.Trace, b *Budget) *Labeler {
	l := &Labeler{t: t, index: make(map[string]uint32), budget: b}
	if len(t.Labels) == 0 {
		t.Labels = []string{""}
	}
	for i, text := range t.Labels {
		if _, ok := l.index[text]; !ok {
			l.index[text] = uint32(i)
		}
	}
	return l
}

// Label returns the number of text, for the Aux of a labelled event. A new text
// gets the next number.
func (l *Labeler) Label(text string) uint32 {
	n, ok := l.index[text]
	if !ok {
		n = uint32(len(l.t.Labels))
		l.index[text] = n
		l.t.Labels = append(l.t.Labels, text)
		l.budget.Hold(int64(len(text)) + labelBytes)
	}
	return n
}
