package cuda

import (
	"cmp"
	"slices"
	"sync"
)

// A mapping is a range of addresses that came from one Allocate.
type mapping struct {
	base         uintptr
	bytes, chunk int64
	left         int64 // bytes that have not been given back; guarded by mappings
}

// part returns the whole chunks among the bytes at addr, which lies in m.
func (m *mapping) part(addr uintptr, bytes int64) (part uintptr, size int64) {
	from := roundUp(int64(addr-m.base), m.chunk)
	to := int64(addr-m.base) + bytes
	if to < m.bytes {
		to = to / m.chunk * m.chunk
	}
	if to <= from || to > m.bytes {
		return 0, 0
	}
	return m.base + uintptr(from), to - from
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// mappings holds the mappings that are not given back as a whole. It is safe for
// concurrent use.
type mappings struct {
	mu   sync.Mutex
	list []*mapping // by address
}

func (l *mappings) add(m *mapping) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, _ := l.search(m.base)
	l.list = slices.Insert(l.list, k, m)
}

// search returns where the mapping with that base is, or should be.
func (l *mappings) search(base uintptr) (int, bool) {
	return slices.BinarySearchFunc(l.list, base, func(m *mapping, a uintptr) int { return cmp.Compare(m.base, a) })
}

// find returns the mapping that an address lies in, or nil.
func (l *mappings) find(addr uintptr) *mapping {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, exact := l.search(addr)
	if !exact {
		k--
	}
	if k < 0 || addr >= l.list[k].base+uintptr(l.list[k].bytes) {
		return nil
	}
	return l.list[k]
}

// forget counts bytes of m as given back, and says whether they were the last.
func (l *mappings) forget(m *mapping, bytes int64) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.left -= bytes; m.left > 0 {
		return false
	}
	k, _ := l.search(m.base)
	l.list = slices.Delete(l.list, k, k+1)
	return true
}
