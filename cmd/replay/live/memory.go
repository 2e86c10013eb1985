package live

import (
	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// A Memory describes the memory of a run's pool. The zero value is host memory that the pool
// caches and the run does not write.
type Memory struct {
	Upstream pool.Upstream  // where the pool gets memory; nil: the host
	Space    pressure.Space // of Upstream
	Direct   bool           // the pool caches nothing, so fragments do not count against the limit
	Mapped   func() int64   // chunks that Upstream has mapped so far; nil: it maps none
	Waits    bool           // the ladder of the pool waits for queued work
	Touch    int64          // bytes of each new object that are written; negative: all
}

// byBytes reports whether the cost of releasing memory depends on its bytes. That is so for
// written pages that go back to the host; elsewhere it depends on the objects. Cycles of a
// calibration release a GiB at most. A cost for each byte found there would be too high for an
// app whose cycles release fifty.
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
