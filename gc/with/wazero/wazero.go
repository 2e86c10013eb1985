// Package wazero allocates the linear memories of a wazero runtime from a pool of host memory,
// outside the Go heap. The pool counts them and keeps them under its limit. A memory is freed when
// its module is closed, or after the program can no longer reach it.
//
//	memory, err := pool.New(pool.Config{Collector: gc.Default()})
//	ctx = experimental.WithMemoryAllocator(ctx, wazero.New(memory))
//	module, err := runtime.InstantiateModule(ctx, compiled, config)
//
// A runtime keeps every module that it has instantiated until the module is closed. So a program
// that does not close modules makes a runtime for each, with one compilation cache for all.
package wazero

import (
	"github.com/tetratelabs/wazero/experimental"

	"github.com/eagergc/eagergc/pool"
)

// New returns an allocator over p, for experimental.WithMemoryAllocator. It is safe for concurrent
// use.
//
// The bytes that api.Memory.Read returns are the module's memory. Keep the module alive by
// runtime.KeepAlive until after their last use.
//
// A shared memory must not move. A module that has one needs WithMemoryCapacityFromMax of wazero's
// runtime configuration.
//
// If the pool has no memory for a module, wazero panics in its instantiation. If the pool has no
// memory for a growing memory, memory.grow fails as WebAssembly specifies.
func New(p *pool.Pool) experimental.MemoryAllocator {
	return experimental.MemoryAllocatorFunc(func(first, most uint64) experimental.LinearMemory {
		return &linear{pool: p, first: first, most: most}
	})
}

// A linear is the memory of one module, which is its only owner.
type linear struct {
	pool   *pool.Pool
	first  uint64 // bytes of its first block, at least
	most   uint64 // its largest size in bytes
	owned  pool.Owned
	memory []byte // all of the block
	used   uint64 // bytes in use by the module
}

// Reallocate returns the memory with size bytes. New bytes are zero. If the block is too small, the
// memory moves to a block of twice the size.
func (l *linear) Reallocate(size uint64) []byte {
	if size > uint64(len(l.memory)) && !l.move(size) {
		return nil
	}
	l.used = size
	return l.memory[:size]
}

func (l *linear) move(size uint64) bool {
	block, err := l.pool.Alloc(int64(min(max(size, 2*l.used, l.first), max(size, l.most))), 0)
	if err != nil {
		return false
	}
	memory := l.pool.Memory(block)
	clear(memory[copy(memory, l.memory[:l.used]):])
	old := l.owned
	owned, err := pool.Own(l.pool, l, block)
	if err != nil {
		l.pool.Free(block)
		return false
	}
	l.owned, l.memory = owned, memory
	old.Free()
	return true
}

// Free frees the memory. wazero calls it when the module is closed.
func (l *linear) Free() {
	l.owned.Free()
	l.owned, l.memory, l.used = pool.Owned{}, nil, 0
}
