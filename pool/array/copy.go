package array

import (
	"fmt"
	"unsafe"

	"github.com/eagergc/eagergc/pool/internal/guard"
)

// A Mover is an upstream of a pool whose memory the processor cannot address. Arrays copy through
// these calls. A call takes effect after the work that stream has queued before, and returns when
// the host's memory may be used again.
type Mover interface {
	Upload(to uintptr, from []byte, stream uint32) error
	Download(to []byte, from uintptr, stream uint32) error
	Copy(to, from uintptr, bytes int64, stream uint32) error
	Fill(to uintptr, pattern []byte, count int64, stream uint32) error // pattern, count times
}

// An Orderer is a [Mover] for memory that several streams use. Order calls f with the stream for
// one call of the Mover. The work of that call comes after all work that used the memories before,
// and Order notes it with [Memory.UsedBy]. Without an Orderer the stream is the one whose work used
// the memory last.
type Orderer interface {
	Order(f func(stream uint32) error, memories ...Memory) error
}

// CopyIn copies a slice of the same length into the array. It returns when the slice may be changed
// again. It fails with [ErrFreed] after Free.
func (a Array[T]) CopyIn(from []T) error {
	if err := sameLength("copy in", len(from), a.n); err != nil {
		return err
	}
	return a.move(func(m Mover, stream uint32) error {
		return m.Upload(a.addr(), asBytes(from), stream)
	}, func(elements []T) { copy(elements, from) })
}

// CopyOut copies the array into a slice of the same length. It fails with [ErrFreed] after Free.
func (a Array[T]) CopyOut(to []T) error {
	if err := sameLength("copy out", len(to), a.n); err != nil {
		return err
	}
	return a.move(func(m Mover, stream uint32) error {
		return m.Download(asBytes(to), a.addr(), stream)
	}, func(elements []T) { copy(to, elements) })
}

// Fill sets every element to v. It fails with [ErrFreed] after Free.
func (a Array[T]) Fill(v T) error {
	return a.move(func(m Mover, stream uint32) error {
		return m.Fill(a.addr(), asBytes([]T{v}), int64(a.n), stream)
	}, func(elements []T) {
		for i := range elements {
			elements[i] = v
		}
	})
}

// CopyFrom copies another array of the same length and space into this one. The two may overlap. It
// fails with [ErrFreed] after Free of either.
func (a Array[T]) CopyFrom(from Array[T]) error {
	if err := sameLength("copy", from.n, a.n); err != nil {
		return err
	}
	if from.m == nil {
		return a.with(nothing)
	}
	return from.with(func(m *memory) error {
		if m.here {
			if err := m.settle(); err != nil {
				return err
			}
			return a.CopyIn(from.elements())
		}
		return a.move(func(up Mover, stream uint32) error {
			return up.Copy(a.addr(), from.addr(), a.Bytes(), stream)
		}, func([]T) { panic("array: copy from memory that is not addressable") }, from.memory())
	})
}

// move calls here with the elements if the processor can address them, else there with the
// upstream. The call uses others, too.
func (a Array[T]) move(there func(Mover, uint32) error, here func([]T), others ...Memory) error {
	return a.with(func(m *memory) error {
		if m.here {
			if err := m.settle(); err != nil {
				return err
			}
			here(a.elements())
			return nil
		}
		up, ok := m.pool.Upstream().(Mover)
		if !ok {
			return fmt.Errorf("%w: the processor cannot address %v memory, and its upstream %T is no Mover", ErrReach, m.pool.Space(), m.pool.Upstream())
		}
		order, ok := up.(Orderer)
		if !ok {
			return guard.Error(func() error { return there(up, m.lastStream()) })
		}
		return guard.Error(func() error {
			return order.Order(func(stream uint32) error { return there(up, stream) }, append(others, a.memory())...)
		})
	})
}

func asBytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(*new(T)))
}

func sameLength(op string, from, to int) error {
	if from != to {
		return fmt.Errorf("array: %s of %d elements to %d", op, from, to)
	}
	return nil
}
