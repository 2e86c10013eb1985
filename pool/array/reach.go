package array

import (
	"fmt"
	"runtime"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/pressure"
)

// Memory describes the memory of an array to the function that [Array.Reach] calls.
type Memory struct {
	Addr  uintptr        // address of the array's first element
	Bytes int64          // size of the elements
	Space pressure.Space // where the memory lies
	m     *memory
}

// Reach calls f with the memory of the array, and returns f's error. The memory stays until f
// returns; a Free meanwhile takes effect then. Reach is for code that lets devices work on arrays;
// [Array.Do] is for the processor. It fails with [ErrFreed] after Free. F is not called for the
// zero value.
func (a Array[T]) Reach(f func(Memory) error) error {
	return a.with(func(m *memory) error {
		return f(a.memory())
	})
}

func (a Array[T]) memory() Memory {
	return Memory{Addr: a.addr(), Bytes: a.Bytes(), Space: a.m.pool.Space(), m: a.m}
}

func (m *memory) note(stream uint32) {
	m.pool.Use(m.block, stream)
	m.uses.Add(1)
	runtime.KeepAlive(m)
}

// Upstream returns where the pool has the memory from.
func (m Memory) Upstream() pool.Upstream { return m.m.pool.Upstream() }

// LastStream returns the stream whose work used the memory last.
func (m Memory) LastStream() uint32 { return m.m.lastStream() }

// UsedBy says that work that stream has queued uses the memory. It returns the stream that used the
// memory before. The work of stream must come after the work of that one.
func (m Memory) UsedBy(stream uint32) (before uint32) {
	m.m.note(stream)
	if stream++; stream == 0 {
		panic("array: stream number out of range")
	}
	before = m.m.last.Swap(stream)
	if before == 0 {
		return m.m.home
	}
	return before - 1
}

// Uses returns how often work was noted that uses the memory. The count wraps around.
func (m Memory) Uses() uint32 { return m.m.uses.Load() }

// Keep keeps the memory beyond the function that Reach calls, until done is called, once: a Free
// meanwhile takes effect then.
func (m Memory) Keep() (done func()) {
	m.m.state.Add(1) // the call has a use of its own, so this is not the first after a Free
	return m.m.done
}

// Taint says that work which no stream shows uses the memory, such as a graph that is being
// captured. Until [Memory.Untaint] is called as often, each use by the processor asks the upstream:
// see [Settler].
func (m Memory) Taint() { m.m.tainted.Add(1) }

// Untaint undoes one call of [Memory.Taint].
func (m Memory) Untaint() { m.m.tainted.Add(-1) }

// Tainted reports whether a call of Taint has not been undone.
func (m Memory) Tainted() bool { return m.m.tainted.Load() > 0 }

// A place is a part of managed memory that work has moved to a device.
type place struct {
	device int
	addr   uintptr
	bytes  int64
}

// MoveTo notes that work moves managed memory to a device, and reports whether part of it may be
// elsewhere. That is so for another device, for memory outside the part that was moved last, and
// after a use by the processor.
func (m Memory) MoveTo(device int) (moves bool) {
	at := m.m.moved.Load()
	if at != nil && at.device == device && m.Addr >= at.addr && m.Addr+uintptr(m.Bytes) <= at.addr+uintptr(at.bytes) {
		return false
	}
	m.m.moved.Store(&place{device, m.Addr, m.Bytes})
	return true
}

// lastStream is the stream whose work used m last, or its home.
func (m *memory) lastStream() uint32 {
	if last := m.last.Load(); last != 0 {
		return last - 1
	}
	return m.home
}

// A Settler is an upstream of a pool whose memory both the processor and queued work may use.
// Settle blocks until the processor may use memory that work of stream has used last. With tainted,
// work that no stream shows uses it, too.
type Settler interface {
	Settle(stream uint32, tainted bool) error
}

// settle waits until the processor may use m, if it can at all. It asks the upstream only if work
// was noted since the last time.
func (m *memory) settle() error {
	uses, tainted := m.uses.Load(), m.tainted.Load() > 0
	if m.settled.Load() == uses+1 && !tainted {
		return nil
	}
	if !m.here {
		return fmt.Errorf("%w: the processor cannot address %v memory; copy elements with ToSlice or View(i, j).CopyIn, or make the array in host or managed memory", ErrReach, m.pool.Space())
	}
	if up, ok := m.pool.Upstream().(Settler); ok {
		defer runtime.KeepAlive(m)
		if err := guard.Error(func() error { return up.Settle(m.lastStream(), tainted) }); err != nil {
			return err
		}
	}
	m.moved.Store(nil)
	m.settled.Store(uses + 1)
	return nil
}
