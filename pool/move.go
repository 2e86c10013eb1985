package pool

import (
	"fmt"
	"unsafe"
)

// asBytes returns the memory of a slice.
func asBytes[T any](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(t))
}

// CopyIn copies a slice of the same length into the array. It returns when the
// slice may be changed again. It fails with [ErrFreed] after Free.
func (a Array[T]) CopyIn(from []T) error {
	if err := sameLength("copy in", len(from), a.n); err != nil {
		return err
	}
	return a.move(func(m Mover, stream uint32) error {
		return m.Upload(a.addr(), asBytes(from), stream)
	}, func(elements []T) { copy(elements, from) })
}

// CopyOut copies the array into a slice of the same length. It fails with
// [ErrFreed] after Free.
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
	}, func(elements []T) { fill(elements, v) })
}

// fill sets every element to v, by copies of what is set already.
func fill[T any](s []T, v T) {
	const chunk = 4096
	if len(s) == 0 {
		return
	}
	s[0] = v
	for n := 1; n < len(s); {
		n += copy(s[n:], s[:min(n, chunk)])
	}
}

// CopyFrom copies another array of the same length and space into this one. The
// two may overlap. It fails with [ErrFreed] after Free of either.
func (a Array[T]) CopyFrom(from Array[T]) error {
	if err := sameLength("copy", from.n, a.n); err != nil {
		return err
	}
	return from.with(func(m *memoryOf) error {
		if addressable(m.pool.cfg) {
			return a.CopyIn(unsafe.Slice((*T)(pointer(from.addr())), from.n))
		}
		return a.move(func(m Mover, stream uint32) error {
			return m.Copy(a.addr(), from.addr(), a.Bytes(), stream)
		}, func(elements []T) { panic("pool: copy from memory that is not addressable") })
	})
}

// move calls here with the elements if the processor can address them, else there
// with the upstream.
func (a Array[T]) move(there func(Mover, uint32) error, here func([]T)) error {
	return a.with(func(m *memoryOf) error {
		if addressable(m.pool.cfg) {
			if err := m.settle(); err != nil {
				return err
			}
			here(unsafe.Slice((*T)(pointer(a.addr())), a.n))
			return nil
		}
		up, ok := m.pool.cfg.Upstream.(Mover)
		if !ok {
			return errReach
		}
		return guard(func() error { return there(up, m.lastStream()) })
	})
}

func sameLength(op string, from, to int) error {
	if from != to {
		return fmt.Errorf("pool: %s of %d elements to %d", op, from, to)
	}
	return nil
}
