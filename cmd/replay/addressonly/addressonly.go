// Package addressonly gives a real pool addresses without memory. It computes which allocations
// the pool refuses, and which bytes it reserves, fragments included. It works at any size, on
// any machine.
package addressonly

import (
	"errors"
	"fmt"
	"sync"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// A Kind is the way in which a pool takes and releases memory.
type Kind string

const (
	Exact    Kind = "exact"    // a segment for every block, and no cache: fragments cost nothing
	Segments Kind = "segments" // a cache of host memory: segments are released whole
	Virtual  Kind = "virtual"  // a cache of GPU memory: memory moves to other addresses
)

// Kinds are all kinds.
var Kinds = []Kind{Exact, Segments, Virtual}

// A Memory is a pool without memory. The caller numbers the objects. It is for one goroutine at
// a time. Close it.
type Memory struct {
	pool   *pool.Pool
	chunks *chunks // nil: memory does not move
	blocks map[int32]pool.Block
}

// New returns a pool of a kind with a hard limit in bytes; 0 = none. It panics if the kind is
// not in [Kinds] or the limit is negative.
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

// Alloc allocates bytes for an object, and reports whether they fit.
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

// Free releases an object, which must be allocated.
func (m *Memory) Free(object int32) {
	b, ok := m.blocks[object]
	if !ok {
		panic(fmt.Sprintf("addressonly: object %d is not allocated", object))
	}
	delete(m.blocks, object)
	m.pool.Free(b)
}

// Live returns the bytes of the allocated objects.
func (m *Memory) Live() int64 { return m.pool.Sample().Live }

// Reserved returns the bytes of the segments.
func (m *Memory) Reserved() int64 { return m.pool.Sample().Reserved }

// Mapped returns the number of chunks mapped so far.
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

// addresses is an upstream that never runs out. It uses an address once. Each address is below
// the ones before, as with mmap: of pieces of one size the pool takes the one with the lowest
// address, so their order decides which ones stay.
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

// chunks is an upstream of addresses to which memory is mapped in chunks, as on a GPU. It only
// counts them.
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
