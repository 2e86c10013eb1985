package pool

import (
	"runtime"

	"github.com/eagergc/eagergc/pressure"
)

// Memory is what [Array.Reach] shows of an array's memory.
type Memory struct {
	Addr  uintptr        // of the array's first element
	Bytes int64          // of its elements
	Space pressure.Space // where it lies
	m     *memoryOf
}

// Reach calls f with the memory, which cannot be taken away meanwhile: a Free
// takes effect when f returns. It is for code that lets devices work on arrays;
// [Array.Do] is for the processor. It fails with [ErrFreed] after Free.
func (a Array[T]) Reach(f func(Memory) error) error {
	return a.with(func(m *memoryOf) error {
		return f(Memory{Addr: a.addr(), Bytes: a.Bytes(), Space: m.pool.cfg.Space, m: m})
	})
}

// LastStream returns the stream whose work used the memory last.
func (m Memory) LastStream() uint32 { return m.m.lastStream() }

// UsedBy says that work of stream, which has been queued, uses the memory, and
// returns the stream that used it last before: that work must come after the
// work of this stream.
func (m Memory) UsedBy(stream uint32) (before uint32) {
	m.m.pool.Use(m.m.block, stream)
	if stream++; stream == 0 {
		panic("pool: stream number out of range")
	}
	before = m.m.last.Swap(stream)
	if before == 0 {
		return m.m.homeStream()
	}
	return before - 1
}

// Taint says that the memory is used by work that nobody can follow, such as a
// recorded graph's; Tainted asks for it.
func (m Memory) Taint() { m.m.tainted.Store(true) }

// Tainted reports whether Taint was called.
func (m Memory) Tainted() bool { return m.m.tainted.Load() }

// lastStream is the stream whose work used m last, or that it is meant for.
func (m *memoryOf) lastStream() uint32 {
	if last := m.last.Load(); last != 0 {
		return last - 1
	}
	return m.homeStream()
}

func (m *memoryOf) homeStream() uint32 {
	return m.pool.core.headers.at(uint32(m.block.ref)).stream
}

// A Settler is an upstream whose memory both the processor and queued work may
// use. Settle blocks until the processor may use memory that work of stream
// used last; with tainted, that any work may have used.
type Settler interface {
	Settle(stream uint32, tainted bool) error
}

// settle waits until the processor may use m.
func (m *memoryOf) settle() error {
	up, ok := m.pool.cfg.Upstream.(Settler)
	if !ok {
		return nil
	}
	defer runtime.KeepAlive(m)
	return guard(func() error { return up.Settle(m.lastStream(), m.tainted.Load()) })
}
