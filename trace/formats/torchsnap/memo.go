package torchsnap

import (
	"fmt"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// A memo holds the values that a pickle may refer to again. Keys count up from 0, and about half of
// all values get one, most of them values that do not matter. So it consists of pages that are
// never copied, with 9 bytes for each value, and a page without a value that matters is nil.
type memo struct {
	pages []*page
	size  int // keys in use
}

const pageValues = 64

type page struct {
	n    [pageValues]int64
	kind [pageValues]kind
}

// put stores v under key, which may be a little larger than all others.
func (m *memo) put(key uint64, v value, b *recording.Budget) error {
	if key > uint64(m.size+maxMemoGap) {
		return fmt.Errorf("memo key %d after %d keys", key, m.size)
	}
	for uint64(len(m.pages))*pageValues <= key {
		m.pages = append(m.pages, nil)
		b.Hold(8)
	}
	m.size = max(m.size, int(key)+1)
	p := m.pages[key/pageValues]
	switch {
	case p != nil:
	case v.kind == kOther:
		return nil
	default:
		p = new(page)
		m.pages[key/pageValues] = p
		b.Hold(9 * pageValues)
	}
	p.n[key%pageValues], p.kind[key%pageValues] = v.n, v.kind
	return nil
}

func (m *memo) get(key uint64) (value, error) {
	if key >= uint64(m.size) {
		return value{}, fmt.Errorf("memo has no key %d", key)
	}
	p := m.pages[key/pageValues]
	if p == nil {
		return value{}, nil
	}
	return value{n: p.n[key%pageValues], kind: p.kind[key%pageValues]}, nil
}
