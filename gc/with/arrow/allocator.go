package arrow

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/eagergc/eagergc/pool"
)

// An Allocator is Arrow's memory.Allocator over a pool of host memory. So arrays, record batches and
// the results of compute are counted, recorded and kept under the pool's limit. Arrow counts
// references, and released memory goes back to the pool at once. Memory that was passed to
// [Allocator.Manage] needs no Release. An Allocator is safe for concurrent use. Make one with [New].
type Allocator struct {
	pool   *pool.Pool
	mu     sync.Mutex
	blocks map[uintptr]*block // by address; a block that the collector freed is removed a little later
}

// A block is memory in use by Arrow.
type block struct {
	pool.Block
	owned pool.Owned // the collector's claim, once Manage has been called
	taken bool       // owned is set
}

var _ memory.Allocator = (*Allocator)(nil)

// New returns an allocator over p. It panics if the processor cannot address
// p's memory.
func New(p *pool.Pool) *Allocator {
	if device, is := p.Space().Device(); is {
		panic(fmt.Sprintf("arrow: Arrow cannot address the memory of device %d", device))
	}
	return &Allocator{pool: p, blocks: make(map[uintptr]*block)}
}

// Allocate returns size bytes of zeroes, aligned to 512. Arrow's interface has no errors, so it
// panics with the pool's error, a [pool.OutOfMemoryError] when memory ran out. It may hold the
// caller for a cycle.
func (a *Allocator) Allocate(size int) []byte {
	if size < 0 {
		panic(fmt.Errorf("arrow: %w: %d bytes", pool.ErrSize, size))
	}
	if size == 0 {
		return nil
	}
	b, err := a.pool.Alloc(int64(size), 0)
	if err != nil {
		panic(err)
	}
	memory := a.pool.Memory(b)
	clear(memory)
	a.mu.Lock()
	a.blocks[b.Addr] = &block{Block: b}
	a.mu.Unlock()
	return memory[:size:size]
}

// Reallocate returns size bytes that begin with the content of b and end with zeroes. The caller
// must not use b afterwards. It panics as Allocate does, and then b still belongs to the caller.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if cap(b) > 0 && size > cap(b)/2 && size <= cap(b) {
		grown := b[:size]
		clear(grown[min(len(b), size):])
		return grown
	}
	moved := a.Allocate(size)
	copy(moved, b)
	a.Free(b)
	return moved
}

// Free frees memory from Allocate or Reallocate. It panics for other memory.
func (a *Allocator) Free(b []byte) {
	if cap(b) == 0 {
		return
	}
	addr := address(b)
	a.mu.Lock()
	found := a.blocks[addr]
	delete(a.blocks, addr)
	a.mu.Unlock()
	switch {
	case found == nil:
		panic(fmt.Sprintf("arrow: free of memory at %#x that is not handed out", addr))
	case found.taken:
		found.owned.Free()
	default:
		a.pool.Free(found.Block)
	}
}

// Manage leaves the memory of data, with its children and dictionaries, to the pool's collector. The
// memory goes back once no array, builder or buffer that refers to it is reachable, or when the last
// reference is released. Manage skips buffers that are managed already or are not from this
// allocator.
//
// A slice of values that was taken out of an array does not keep it alive: call
// runtime.KeepAlive(array) after its last use. The only errors are those of [pool.Own].
func (a *Allocator) Manage(data ...arrow.ArrayData) error {
	for _, d := range data {
		for _, b := range d.Buffers() {
			if err := a.manage(b); err != nil {
				return err
			}
		}
		if d.DataType().ID() == arrow.DICTIONARY {
			if err := a.Manage(d.Dictionary()); err != nil {
				return err
			}
		}
		if err := a.Manage(d.Children()...); err != nil {
			return err
		}
	}
	return nil
}

func (a *Allocator) manage(b *memory.Buffer) error {
	for b != nil && b.Parent() != nil {
		b = b.Parent()
	}
	if b == nil || cap(b.Buf()) == 0 {
		return nil
	}
	addr := address(b.Buf())
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.blocks[addr]
	if found == nil || found.taken {
		return nil
	}
	owned, err := pool.Own(a.pool, b, found.Block)
	if err != nil {
		return err
	}
	found.owned, found.taken = owned, true
	runtime.AddCleanup(b, a.forget, found)
	return nil
}

// forget removes a block whose buffer has died from the table, unless its address
// was handed out again.
func (a *Allocator) forget(dead *block) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blocks[dead.Addr] == dead {
		delete(a.blocks, dead.Addr)
	}
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
