package spill

import (
	"fmt"
	"slices"
	"unsafe"
)

const (
	inMemory = 16 << 20 // bytes of a list that goes to a file when it grows
	step     = 64 << 20 // bytes by which a file grows at least
)

// A List is a slice that may lie in a file. T must have no pointers. The zero value
// is an empty list in memory; [New] gives it a store. It is for one goroutine at a
// time.
type List[T any] struct {
	store *Store
	items []T
	file  *mapping // nil while the list is in memory
	err   error
}

// New returns an empty list with room for n items. It counts what it holds in s.
func New[T any](s *Store, n int) *List[T] {
	l := &List[T]{store: s}
	l.reserve(n)
	return l
}

// Slice returns n zero items, and what frees them: nobody may use them after that.
func Slice[T any](n int) (items []T, free func()) {
	l := New[T](nil, n)
	return l.Grow(n), l.Free
}

// Append adds v.
func (l *List[T]) Append(v T) {
	if len(l.items) == cap(l.items) {
		l.reserve(len(l.items) + max(1024, len(l.items)/2))
	}
	l.items = append(l.items, v)
	l.store.Hold(int64(unsafe.Sizeof(v)))
}

// Grow adds n zero items and returns them.
func (l *List[T]) Grow(n int) []T {
	l.reserve(len(l.items) + n)
	from := len(l.items)
	l.items = l.items[:from+n]
	l.store.Hold(int64(n) * width[T]())
	clear(l.items[from:])
	return l.items[from:]
}

// Err returns an error if the list has lost items because the disk is full. The
// list's store has the same error.
func (l *List[T]) Err() error { return l.err }

// Len returns the number of items.
func (l *List[T]) Len() int { return len(l.items) }

// Items returns the items. They are valid until the next call of another method,
// and may be changed.
func (l *List[T]) Items() []T { return l.items }

// Free empties the list. Nobody may use its items any more.
func (l *List[T]) Free() {
	l.store.Release(int64(len(l.items)) * width[T]())
	if l.file != nil {
		l.file.close()
	}
	l.file, l.items = nil, nil
}

// FreeItems frees the file that the items of a list lie in, for a caller who has only
// the items; items in memory are left to the collector. Nobody may use them any more.
func FreeItems[T any](items []T) { freeMapping(unsafe.Pointer(unsafe.SliceData(items))) }

func width[T any]() int64 {
	var v T
	return int64(unsafe.Sizeof(v))
}

// reserve makes room for n items. If the disk is full the list begins anew, in
// memory, and Err is set.
func (l *List[T]) reserve(n int) {
	size := int64(n) * width[T]()
	switch {
	case n <= cap(l.items):
	case !canMap || !files.Load() || size <= inMemory:
		l.items = slices.Grow(l.items, n-len(l.items))
	default:
		bytes, err := l.grow(max(size, int64(len(l.items))*width[T]()+step))
		if err != nil {
			l.err = fmt.Errorf("temporary file: %w", err)
			l.store.fail(l.err)
			l.items = make([]T, 0, n-len(l.items))
			return
		}
		l.items = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), int64(len(bytes))/width[T]())[:len(l.items)]
	}
}

// grow makes the file at least size bytes long, with the items at its front.
func (l *List[T]) grow(size int64) ([]byte, error) {
	if l.file != nil {
		return l.file.grow(size)
	}
	file, err := newMapping()
	if err != nil {
		return nil, err
	}
	bytes, err := file.grow(size)
	if err != nil {
		file.close()
		return nil, err
	}
	l.file = file
	copy(bytes, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(l.items))), int64(len(l.items))*width[T]()))
	return bytes, nil
}
