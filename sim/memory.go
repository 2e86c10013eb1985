package sim

// A Memory is what a run allocates from, where more than the sum of bytes decides
// what fits: a pool's own address space, without memory behind it. Objects have
// the number of their allocation in the workload. It is for one run.
type Memory interface {
	// Alloc takes bytes for an object, and reports whether they fit.
	Alloc(object int32, bytes int64) bool
	// Free gives back what an object took.
	Free(object int32)
	// Live is the bytes of the objects that are there, Reserved what holds them.
	Live() int64
	Reserved() int64
}

// A mapper is a Memory that puts memory behind addresses, in chunks.
type mapper interface {
	Memory
	// Mapped returns how many chunks it has put there so far.
	Mapped() int64
}

// exactly is the Memory in which everything fits that is not above the limit.
type exactly struct {
	w     *Workload
	limit int64 // 0 = none
	live  int64
}

func (m *exactly) Alloc(object int32, bytes int64) bool {
	if m.limit > 0 && m.live+bytes > m.limit {
		return false
	}
	m.live += bytes
	return true
}

func (m *exactly) Free(object int32) { m.live -= m.w.sizes[object] }
func (m *exactly) Live() int64       { return m.live }
func (m *exactly) Reserved() int64   { return m.live }
