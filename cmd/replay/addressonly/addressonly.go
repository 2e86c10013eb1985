// Package addressonly gives a real pool addresses without memory behind them. What the
// pool would reserve and refuse, fragments included, can then be computed at any
// size, on any machine.
package addressonly

import (
	"errors"
	"fmt"
	"sync"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// A Kind says how the pool takes and gives back memory.
type Kind string

const (
	Exact    Kind = "exact"    // a segment for every block, nothing is cached: fragments cost nothing
	Segments Kind = "segments" // a caching pool, whose segments go back whole: of the host's memory
	Virtual  Kind = "virtual"  // a caching pool, whose memory moves to other addresses: of a GPU's memory
)

// Kinds lists them.
var Kinds = []Kind{Exact, Segments, Virtual}

// A Memory is a pool without memory. Objects go by numbers of the caller's. It is
// for one goroutine at a time. Close it.
type Memory struct {
	pool   *pool.Pool
	chunks *chunks // nil: memory does not move
	blocks map[int32]pool.Block
}

// New returns a pool of a kind with a hard limit in bytes; 0 = none. It panics unless the
// kind is one of [Kinds], and the limit 0 or more.
func New(kind Kind, limit int64) *Memory {
	cfg := pool.Config{Space: pressure.Device(0), Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}, Direct: kind == Exact}
	var moving *chunks
	switch kind {
	case Exact, Segments:
		cfg.Upstream = new(addresses)
	case Virtual:
		moving = new(chunks)
		cfg.Upstream = moving
	default:
		panic(fmt.Sprintf("addressonly: unknown kind of pool %q (want %v)", kind, Kinds))
	}
	p, err := pool.New(cfg)
	if err != nil {
		panic(fmt.Sprintf("addressonly: %v", err))
	}
	return &Memory{p, moving, make(map[int32]pool.Block)}
}

// Alloc takes bytes for an object, and reports whether they fit.
func (m *Memory) Alloc(object int32, bytes int64) bool {
	b, err := m.pool.Alloc(bytes, 0)
	if err != nil {
		if errors.Is(err, pool.ErrOutOfMemory) {
			return false
		}
		panic(err) // sizes come from a checked workload, and the pool is open
	}
	m.blocks[object] = b
	return true
}

// Free gives back what an object has. The object must be there.
func (m *Memory) Free(object int32) {
	b, ok := m.blocks[object]
	if !ok {
		panic(fmt.Sprintf("addressonly: object %d is not there", object))
	}
	delete(m.blocks, object)
	m.pool.Free(b)
}

// Live returns the bytes of the objects that are there.
func (m *Memory) Live() int64 { return m.pool.Sample().Live }

// Reserved returns the bytes of the segments.
func (m *Memory) Reserved() int64 { return m.pool.Sample().Reserved }

// Mapped returns how many chunks were put behind addresses so far.
func (m *Memory) Mapped() int64 {
	if m.chunks == nil {
		return 0
	}
	return m.chunks.mapped
}

// Close closes the pool.
func (m *Memory) Close() {
	for object := range m.blocks {
		m.Free(object)
	}
	m.pool.Close()
}

// addresses are an upstream that never runs out. An address is used once, and
// each is below those before it, as mmap's are: of pieces of one size the pool takes
// that with the lowest address, so their order decides which ones stay.
type addresses struct {
	mu   sync.Mutex
	used uintptr // bytes, down from the top
}

func (a *addresses) Allocate(bytes int64, _ uint32) (uintptr, error) {
	const top, align = 1 << 62, 2 << 20 // what a driver aligns to
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used += (uintptr(bytes) + align - 1) / align * align
	return top - a.used, nil
}

func (*addresses) Release(uintptr, int64, uint32) error { return nil }

func (*addresses) Info() (pressure.Info, error) {
	return pressure.Info{}, errors.New("addressonly: there is no memory")
}

// chunks are addresses behind which memory is put in chunks, as a GPU does it.
// There is no memory, so all that is left to do is to count.
type chunks struct {
	addresses
	size   int64 // of a chunk
	mapped int64
}

func (*chunks) Granule() int64 { return 2 << 20 } // of CUDA's virtual memory

func (c *chunks) Range(chunk int64, stream uint32) (addr uintptr, bytes int64, err error) {
	const room = 1 << 42
	c.size = chunk
	addr, err = c.Allocate(room+chunk, stream)
	return (addr + uintptr(chunk-1)) &^ uintptr(chunk-1), room, err
}

func (*chunks) FreeRange(uintptr) error { return nil }

func (c *chunks) Map(to, _ []pool.Span, _ uint32) error {
	for _, s := range to {
		c.mapped += s.Bytes / c.size
	}
	return nil
}

func (*chunks) Unmap(pool.Span) error { return nil }
