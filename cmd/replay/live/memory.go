package live

import (
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Memory says what memory the pool of a run has. The zero value is memory of the
// host, which the pool caches and nobody writes.
type Memory struct {
	Upstream pool.Upstream  // where the pool gets it; nil: the host
	Space    pressure.Space // what Upstream gives
	Direct   bool           // the pool caches nothing: fragments then take no part of the limit
	Mapped   func() int64   // how many chunks Upstream has put behind addresses so far; nil: it maps none
	Waits    bool           // the ladder of the pool waits for work that was queued
	Touch    int64          // bytes of each object that are written when it is allocated; negative: all
}

// byBytes reports whether it takes time by the byte to give memory back: pages that
// were written, and go back to the host. Elsewhere it takes time by the object. A cost
// by the byte, found where cycles give back a GiB at most, would say too much of an
// app whose cycles give back fifty.
func (m *Memory) byBytes() bool { return m.Direct && m.Touch < 0 }

// newPool returns a pool with a limit; 0 = none.
func (m *Memory) newPool(c *gc.Collector, limit int64, rec trace.Sink) (*pool.Pool, error) {
	return pool.New(pool.Config{
		Upstream:  m.Upstream,
		Space:     m.Space,
		Limits:    pressure.Limits{Hard: pressure.Limit{Bytes: limit}},
		Collector: c,
		Trace:     rec,
		Direct:    m.Direct,
	})
}

// touch writes the first Touch bytes of a new object.
func (m *Memory) touch(a array.Array[byte]) error {
	n := min(uint64(a.Len()), uint64(m.Touch)) // a negative Touch is a large number
	if n == 0 {
		return nil
	}
	return a.View(0, int(n)).Fill(1)
}
