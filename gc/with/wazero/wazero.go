// Package wazero gives the plugins of a wazero runtime their linear memories from a pool of host
// memory, outside the Go heap. The pool counts them and keeps them under its limit, and a
// memory goes back when its module is closed, or else once it cannot be reached.
//
//	memory, err := pool.New(pool.Config{Collector: gc.Default()})
//	ctx = experimental.WithMemoryAllocator(ctx, wazero.New(memory))
//	module, err := runtime.InstantiateModule(ctx, compiled, config)
//
// A runtime keeps every module that it has instantiated until that is closed. So a program
// that forgets modules makes a runtime for each, with one compilation cache for all.
package wazero

import (
	"github.com/tetratelabs/wazero/experimental"

	"github.com/eagergc/eagergc/pool"
)

// New returns an allocator over p, for experimental.WithMemoryAllocator. It is safe for concurrent use.
//
// Bytes that api.Memory.Read returns are the module's memory: keep the module, by
// runtime.KeepAlive, until after their last use.
//
// Where the pool has no memory for a module, wazero panics in its instantiation; where
// it has none for a memory to grow into, memory.grow fails as WebAssembly says.
func New(p *pool.Pool) experimental.MemoryAllocator {
	return experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		return &linear{pool: p, most: most}
	})
}

// A linear is one module's memory. Its module is its only owner.
type linear struct {
	pool   *pool.Pool
	most   uint64 // bytes that it may ever have
	owned  pool.Owned
	memory []byte // all of the block
	used   uint64 // bytes that the module has
}

// Reallocate returns the memory with size bytes, those that are new being zeroes. Where the block
// is too small it takes one of twice the size, and moves.
func (l *linear) Reallocate(size uint64) []byte {
	if size > uint64(len(l.memory)) && !l.move(size) {
		return nil
	}
	l.used = size
	return l.memory[:size]
}

func (l *linear) move(size uint64) bool {
	block, err := l.pool.Alloc(int64(min(max(size, 2*l.used), max(size, l.most))), 0)
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

// Free gives the memory back: wazero calls it when the module is closed.
func (l *linear) Free() {
	l.owned.Free()
	l.owned, l.memory, l.used = pool.Owned{}, nil, 0
}
