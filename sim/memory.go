package sim

// A Memory decides which allocations of a run fit, if more than the sum of bytes matters. It may be
// a pool's address space without memory behind it. An object's number is that of its allocation in
// the workload. A Memory is for one run.
type Memory interface {
	Alloc(object int32, bytes int64) bool // takes bytes for an object, and reports whether they fit
	Free(object int32)                    // gives back an object's bytes
	Live() int64                          // bytes of the objects
	Reserved() int64                      // bytes that hold them
	Mapped() int64                        // chunks of memory mapped so far
}

// exactly is the Memory in which everything up to the limit fits.
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
func (m *exactly) Mapped() int64     { return 0 }
