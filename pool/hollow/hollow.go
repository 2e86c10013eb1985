// Package hollow gives a real pool addresses without memory behind them. What the
// pool would reserve and refuse, fragments included, can then be computed at any
// size, on any machine.
package hollow

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
	Segments Kind = "segments" // a caching pool, whose segments go back whole
	Virtual  Kind = "virtual"  // a caching pool, whose segments go back in parts
)

// Kinds lists them.
var Kinds = []Kind{Exact, Segments, Virtual}

// A Memory is a pool without memory. Objects go by numbers of the caller's. It is
// for one goroutine at a time. Close it.
type Memory struct {
	pool   *pool.Pool
	blocks map[int32]pool.Block
}

// New returns a pool of a kind with a hard limit in bytes; 0 = none.
func New(kind Kind, limit int64) (*Memory, error) {
	cfg := pool.Config{Space: pressure.Device(0), Limits: pressure.Limits{Hard: pressure.Limit{Bytes: limit}}, Direct: kind == Exact}
	switch kind {
	case Exact, Segments:
		cfg.Upstream = new(addresses)
	case Virtual:
		cfg.Upstream = new(divisible)
	default:
		return nil, fmt.Errorf("hollow: unknown kind of pool %q (want %v)", kind, Kinds)
	}
	p, err := pool.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("hollow: %w", err)
	}
	return &Memory{p, make(map[int32]pool.Block)}, nil
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
		panic(fmt.Sprintf("hollow: object %d is not there", object))
	}
	delete(m.blocks, object)
	m.pool.Free(b)
}

// Live returns the bytes of the objects that are there.
func (m *Memory) Live() int64 { return m.pool.Sample().Live }

// Reserved returns the bytes of the segments.
func (m *Memory) Reserved() int64 { return m.pool.Sample().Reserved }

// Close closes the pool.
func (m *Memory) Close() {
	for object := range m.blocks {
		m.Free(object)
	}
	m.pool.Close()
}

// addresses are an upstream that never runs out. An address is used once.
type addresses struct {
	mu   sync.Mutex
	next uintptr
}

func (a *addresses) Allocate(bytes int64, _ uint32) (uintptr, error) {
	const align = 2 << 20 // what a driver aligns to
	a.mu.Lock()
	defer a.mu.Unlock()
	addr := (a.next + align) / align * align
	a.next = addr + uintptr(bytes)
	return addr, nil
}

func (*addresses) Release(uintptr, int64, uint32) error { return nil }

func (*addresses) Info() (pressure.Info, error) {
	return pressure.Info{}, errors.New("hollow: there is no memory")
}

// divisible addresses are given back in parts, as a GPU's virtual memory is.
type divisible struct{ addresses }

func (*divisible) Part(addr uintptr, bytes int64) (part uintptr, size int64) {
	const unit = 2 << 20 // the granule of CUDA's virtual memory
	part = (addr + unit - 1) / unit * unit
	if end := (addr + uintptr(bytes)) / unit * unit; end > part {
		return part, int64(end - part)
	}
	return 0, 0
}
