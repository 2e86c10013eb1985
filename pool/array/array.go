package array

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// An Array is a row of elements in a pool's memory. Like a slice it is a small value that refers to
// memory: copies and views share the memory. It goes back to the pool when [Array.Free] is called
// on any of them. Otherwise a collection gives it back once all of them are unreachable. The zero
// value has no elements.
//
// T must not contain pointers: the Go collector does not look into the memory. Methods are safe for
// concurrent use. Access to the same elements at the same time is for the program to order.
type Array[T any] struct {
	m      *memory
	off, n int // in elements
}

// memory is what an array shares with its copies and views. It is the Go object whose death the
// collector looks for.
type memory struct {
	pool  *pool.Pool
	owned pool.Owned
	block pool.Block
	here  bool         // the processor can address it
	home  uint32       // the stream that it was made for
	state atomic.Int64 // freedBit + number of calls that use the memory now

	last    atomic.Uint32         // the stream that used the memory last + 1; 0: home
	tainted atomic.Int32          // see Memory.Taint
	uses    atomic.Uint32         // how often work was noted that uses the memory
	settled atomic.Uint32         // uses + 1 when the processor last waited for all of that work
	moved   atomic.Pointer[place] // the last MoveTo; nil: the memory is the host's, or not known
}

const freedBit = 1 << 62

// Errors of arrays.
var (
	ErrFreed = errors.New("array: used after Free")
	ErrReach = errors.New("array: memory is out of reach") // of the processor, or of a device
)

// On is the stream for whose work an array is made. Without it that is stream 0.
type On uint32

func stream(on []On) uint32 {
	if len(on) == 0 {
		return 0
	}
	return uint32(on[0])
}

// New returns an array of n elements in p. The memory still has the bytes of its last user. Errors
// are those of [pool.Pool.Alloc]. It panics if T contains pointers. New and Free together take
// about 0.1 us (AMD EPYC, Go 1.26.8, results/2026-11-21-pool).
func New[T any](p *pool.Pool, n int, on ...On) (Array[T], error) {
	mustBePlain[T]()
	var t T
	if size := int64(unsafe.Sizeof(t)); n < 0 || size > 0 && int64(n) > pool.MaxBytes/size {
		return Array[T]{}, fmt.Errorf("array: %w: %d elements of %d bytes", pool.ErrSize, n, size)
	}
	m := &memory{pool: p, home: stream(on)}
	var err error
	if m.block, err = p.Alloc(int64(n)*int64(unsafe.Sizeof(t)), m.home); err != nil {
		return Array[T]{}, err
	}
	_, device := p.Space().Device()
	m.here = !device
	if m.owned, err = pool.Own(p, m, m.block); err != nil {
		p.Free(m.block)
		return Array[T]{}, err
	}
	return Array[T]{m: m, n: n}, nil
}

// Free gives the memory back, for this array and all that share it. To free again does nothing. If
// a call uses the memory at this moment, the memory goes back when that call ends.
func (a Array[T]) Free() {
	if a.m != nil && a.m.state.Or(freedBit) == 0 {
		a.m.release()
	}
}

func (m *memory) release() {
	m.owned.Free()
	runtime.KeepAlive(m)
}

// use keeps the memory until done.
func (m *memory) use() error {
	for {
		s := m.state.Load()
		if s&freedBit != 0 {
			return fmt.Errorf("%w (it had %v)", ErrFreed, pressure.Bytes(m.block.Bytes))
		}
		if m.state.CompareAndSwap(s, s+1) {
			return nil
		}
	}
}

// done ends a use. The last one after a Free gives the memory back.
func (m *memory) done() {
	if m.state.Add(-1) == freedBit {
		m.release()
	}
	runtime.KeepAlive(m)
}

// with calls f while the memory cannot be taken away.
func (a Array[T]) with(f func(m *memory) error) error {
	if a.m == nil {
		return nil
	}
	if err := a.m.use(); err != nil {
		return err
	}
	defer a.m.done()
	return f(a.m)
}

// nothing makes with only check that the array has not been freed.
func nothing(*memory) error { return nil }

// Len returns the number of elements.
func (a Array[T]) Len() int { return a.n }

// Bytes returns the size of the elements.
func (a Array[T]) Bytes() int64 { return int64(a.n) * int64(unsafe.Sizeof(*new(T))) }

// View returns the elements from i to j, without j. It shares the memory, keeps it
// reachable, and takes no memory itself. It panics if i or j is out of range, as slicing does.
func (a Array[T]) View(i, j int) Array[T] {
	if i < 0 || j < i || j > a.n {
		panic(fmt.Sprintf("array: view [%d:%d] of an array of %d", i, j, a.n))
	}
	return Array[T]{m: a.m, off: a.off + i, n: j - i}
}

func (a Array[T]) addr() uintptr {
	return a.m.block.Addr + uintptr(a.off)*unsafe.Sizeof(*new(T))
}

// elements returns the elements as a slice, for memory that the processor can address.
func (a Array[T]) elements() []T { return unsafe.Slice((*T)(pointer(a.addr())), a.n) }

// pointer turns the address of memory outside the Go heap into a pointer.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// mustBePlain panics if T contains pointers.
func mustBePlain[T any]() {
	if t := reflect.TypeFor[T](); !isPlain(t) {
		panic(fmt.Sprintf("array: %v contains pointers, which the Go collector would not see", t))
	}
}

// isPlain reports whether values of a type contain no pointers.
func isPlain(t reflect.Type) bool {
	switch k := t.Kind(); k {
	case reflect.Array:
		return t.Len() == 0 || isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	default:
		return k >= reflect.Bool && k <= reflect.Complex128
	}
}
