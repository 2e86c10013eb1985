package pool

import (
	"runtime"

	"github.com/eagergc/eagergc/pressure"
)

// Memory describes the memory of an array to the function that [Array.Reach] calls.
type Memory struct {
	Addr  uintptr        // address of the array's first element
	Bytes int64          // size of the elements
	Space pressure.Space // where the memory lies
	m     *memoryOf
}

// Reach calls f with the memory of the array, and returns f's error. The memory
// stays until f returns; a Free meanwhile takes effect then. Reach is for code that
// lets devices work on arrays; [Array.Do] is for the processor. It fails with
// [ErrFreed] after Free.
func (a Array[T]) Reach(f func(Memory) error) error {
	return a.with(func(m *memoryOf) error {
		return f(Memory{Addr: a.addr(), Bytes: a.Bytes(), Space: m.pool.cfg.Space, m: m})
	})
}

// LastStream returns the stream whose work used the memory last.
func (m Memory) LastStream() uint32 { return m.m.lastStream() }

// UsedBy says that work that stream has queued uses the memory. It returns the
// stream that used the memory before. The work of stream must come after the work
// of that one.
func (m Memory) UsedBy(stream uint32) (before uint32) {
	m.m.pool.Use(m.m.block, stream)
	m.m.uses.Add(1)
	if stream++; stream == 0 {
		panic("pool: stream number out of range")
	}
	before = m.m.last.Swap(stream)
	if before == 0 {
		return m.m.homeStream()
	}
	return before - 1
}

// Taint says that the memory is used by work that no stream shows, such as a graph
// that can be launched at any time. Later uses of the memory wait for the whole
// device.
func (m Memory) Taint() { m.m.tainted.Store(true) }

// MoveTo notes that work moves managed memory to a device, and reports whether it
// was elsewhere before: on another device, or used by the processor since. The
// whole memory moves, also that outside a view: its address and bytes are returned.
func (m Memory) MoveTo(device int) (addr uintptr, bytes int64, moves bool) {
	return m.m.block.Addr, m.m.block.Bytes, m.m.place.Swap(int32(device)+1) != int32(device)+1
}

// Tainted reports whether Taint was called.
func (m Memory) Tainted() bool { return m.m.tainted.Load() }

// lastStream is the stream whose work used m last, or the home stream.
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
// use. Settle blocks until the processor may use memory that work of stream has
// used last. With tainted, any work of the device may have used it.
type Settler interface {
	Settle(stream uint32, tainted bool) error
}

// settle waits until the processor may use m. It asks the upstream only if work was
// noted since the last time.
func (m *memoryOf) settle() error {
	uses, tainted := m.uses.Load(), m.tainted.Load()
	if m.settled.Load() == uses+1 && !tainted {
		return nil
	}
	if up, ok := m.pool.cfg.Upstream.(Settler); ok {
		defer runtime.KeepAlive(m)
		if err := guard(func() error { return up.Settle(m.lastStream(), tainted) }); err != nil {
			return err
		}
	}
	m.place.Store(0)
	m.settled.Store(uses + 1)
	return nil
}
