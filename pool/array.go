package pool

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// An Array is a row of elements in a pool's memory. Like a slice it is a small
// value that refers to memory: copies and views share the memory. It goes back to
// the pool when [Array.Free] is called on any of them. Otherwise a collection
// gives it back once all of them are unreachable. The zero value has no elements.
//
// T must not contain pointers: the Go collector does not look into the memory.
// Methods are safe for concurrent use. Access to the same elements at the same
// time is for the program to order.
type Array[T any] struct {
	m      *memoryOf
	off, n int // in elements
}

// memoryOf is the memory that an array shares with its copies and views. It is the
// Go object whose death the collector looks for.
type memoryOf struct {
	pool  *Pool
	block Block
	slot  gc.Slot
	state atomic.Int64 // freedBit + number of calls that use the memory now

	last    atomic.Uint32 // the stream that used the memory last + 1; 0: the home stream
	tainted atomic.Bool   // see Memory.Taint
	uses    atomic.Uint32 // how often work was noted that uses the memory
	settled atomic.Uint32 // uses + 1 when the processor last waited for all of that work
	place   atomic.Int32  // 1 + the device that the memory was moved to last; 0: the host, or unknown
}

const freedBit = 1 << 62

// Errors of arrays.
var (
	ErrFreed = errors.New("pool: array is used after Free")
	// ErrReach is in errors that say that the processor, or a device, cannot use
	// memory where it lies.
	ErrReach = errors.New("pool: memory is out of reach")

	errReach = fmt.Errorf("%w: the processor cannot address it, and its upstream is no Mover", ErrReach)
)

// collecting binds a pool to a collector.
type collecting struct {
	c       *gc.Collector
	gate    *gc.Gate
	owners  *gc.WeakRegistry[Block] // of the memory that arrays and Own have left to the collector
	private bool                    // the pool made the collector
}

// large is the size in bytes from which on an array is weak at once, so that the
// runtime's own cycles find it. That costs 0.4 us, which is little beside what
// one does with as much memory.
const large = 1 << 20

func (p *Pool) attach(c *gc.Collector, private bool) *collecting {
	k := &collecting{c: c, gate: p.group.gate(c), private: private}
	k.owners = gc.NewWeakRegistry(k.gate, large, func(_ gc.Slot, b Block, _ int64) { p.free(b, trace.FreeCycle) })
	p.collect.Store(k)
	return k
}

// collector returns the pool's collector. If the pool was given none, it makes a
// private one with the policy never: then only the ladder collects.
func (p *Pool) collector() (*collecting, error) {
	if k := p.collect.Load(); k != nil {
		return k, nil
	}
	p.once.Lock()
	defer p.once.Unlock()
	if k := p.collect.Load(); k != nil {
		return k, nil
	}
	if p.closed.Load() {
		return nil, ErrClosed
	}
	c, err := gc.New(gc.Config{Policy: gc.Spec{}.New(), Recorder: p.sink.Load().orNil()})
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	return p.attach(c, true), nil
}

// NewArray returns an array of n elements, for work of stream. The memory holds
// what its last user left there. Errors are those of [Pool.Alloc]. It panics if T
// contains pointers. NewArray and Free together take about 0.1 us (AMD EPYC, Go
// 1.26.8, results/2026-11-21-pool).
func NewArray[T any](p *Pool, n int, stream uint32) (Array[T], error) {
	mustBePlain[T]()
	var t T
	if size := int64(unsafe.Sizeof(t)); n < 0 || size > 0 && int64(n) > MaxBytes/size {
		return Array[T]{}, fmt.Errorf("%w: %d elements of %d bytes", ErrSize, n, size)
	}
	k, err := p.collector()
	if err != nil {
		return Array[T]{}, err
	}
	b, err := p.Alloc(int64(n)*int64(unsafe.Sizeof(t)), stream)
	if err != nil {
		return Array[T]{}, err
	}
	m := &memoryOf{pool: p, block: b}
	m.slot = gc.Track(k.owners, m, p.core.headers.at(uint32(b.ref)).size, b)
	return Array[T]{m: m, n: n}, nil
}

// Free gives the memory back, for this array and all that share it. To free again
// does nothing. If a call uses the memory at this moment, the memory goes back
// when that call ends.
func (a Array[T]) Free() {
	if a.m != nil {
		a.m.free()
	}
}

func (m *memoryOf) free() {
	if s := m.state.Or(freedBit); s == 0 {
		m.release()
	}
}

func (m *memoryOf) release() {
	if b, _, ok := m.pool.collect.Load().owners.Untrack(m.slot); ok {
		m.pool.free(b, trace.FreeExplicit)
	}
	runtime.KeepAlive(m)
}

// use keeps the memory for the length of a call. If it succeeds, done must follow.
func (m *memoryOf) use() error {
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
func (m *memoryOf) done() {
	if m.state.Add(-1) == freedBit {
		m.release()
	}
	runtime.KeepAlive(m)
}

// Len returns the number of elements.
func (a Array[T]) Len() int { return a.n }

// Bytes returns the size of the elements.
func (a Array[T]) Bytes() int64 {
	var t T
	return int64(a.n) * int64(unsafe.Sizeof(t))
}

// Block returns the memory that the array shares, and false once it is freed.
func (a Array[T]) Block() (Block, bool) {
	if a.m == nil || a.m.state.Load()&freedBit != 0 {
		return Block{}, false
	}
	return a.m.block, true
}

// View returns the elements from i to j, without j. It shares the memory, keeps it
// reachable, and takes no memory itself. It panics if i or j is out of range, as
// slicing does.
func (a Array[T]) View(i, j int) Array[T] {
	if i < 0 || j < i || j > a.n {
		panic(fmt.Sprintf("pool: view [%d:%d] of an array of %d", i, j, a.n))
	}
	return Array[T]{m: a.m, off: a.off + i, n: j - i}
}

// Use says that work that stream has queued so far uses the memory: see [Pool.Use].
func (a Array[T]) Use(stream uint32) {
	if a.m != nil {
		a.m.pool.Use(a.m.block, stream)
		a.m.uses.Add(1)
		runtime.KeepAlive(a.m)
	}
}

func (a Array[T]) addr() uintptr {
	var t T
	return a.m.block.Addr + uintptr(a.off)*unsafe.Sizeof(t)
}

// with calls f while the memory cannot be taken away.
func (a Array[T]) with(f func(m *memoryOf) error) error {
	if a.n == 0 && a.m == nil {
		return nil
	}
	if err := a.m.use(); err != nil {
		return err
	}
	defer a.m.done()
	return f(a.m)
}

// Do calls f with the elements as a slice, and returns f's error. The slice is
// valid until f returns; a Free meanwhile takes effect then. Do first waits for
// queued work that uses the memory: see [Settler]. It fails with [ErrFreed] after
// Free, and if the processor cannot address the memory.
func (a Array[T]) Do(f func([]T) error) error {
	return a.with(func(m *memoryOf) error {
		if !addressable(m.pool.cfg) {
			return errReach
		}
		if err := m.settle(); err != nil {
			return err
		}
		return f(unsafe.Slice((*T)(pointer(a.addr())), a.n))
	})
}

// At returns element i. It waits for queued work that uses the memory, and calls no
// driver if there was none since the last wait: then it takes about 20 ns. An element
// of a slice within [Array.Do] takes less than 1 ns. At panics if i is out of range,
// and fails as Do does.
func (a Array[T]) At(i int) (v T, err error) {
	e, err := a.element(i)
	if err != nil {
		return v, err
	}
	v = *e
	a.m.done()
	return v, nil
}

// Set changes element i: see [Array.At].
func (a Array[T]) Set(i int, v T) error {
	e, err := a.element(i)
	if err != nil {
		return err
	}
	*e = v
	a.m.done()
	return nil
}

// element returns the place of element i, which is there until done.
func (a Array[T]) element(i int) (*T, error) {
	if uint(i) >= uint(a.n) {
		panic(fmt.Sprintf("pool: index %d of an array of %d", i, a.n))
	}
	if err := a.m.use(); err != nil {
		return nil, err
	}
	err := errReach
	if addressable(a.m.pool.cfg) {
		err = a.m.settle()
	}
	if err != nil {
		a.m.done()
		return nil, err
	}
	return (*T)(pointer(a.addr() + uintptr(i)*unsafe.Sizeof(*new(T)))), nil
}

// mustBePlain panics if T contains pointers.
func mustBePlain[T any]() {
	var t T
	switch any(t).(type) {
	case float32, float64, byte, int8, int16, uint16, int32, uint32, int64, uint64, int, uint, bool, complex64, complex128:
		return
	}
	typ := reflect.TypeFor[T]()
	plain, known := plainTypes.Load(typ)
	if !known {
		plain = isPlain(typ)
		plainTypes.Store(typ, plain)
	}
	if !plain.(bool) {
		panic(fmt.Sprintf("pool: %v contains pointers, which the Go collector would not see", typ))
	}
}

var plainTypes sync.Map // reflect.Type to bool

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

// addressable reports whether the processor can address the memory of a pool.
func addressable(cfg Config) bool {
	_, device := cfg.Space.Device()
	return !device
}
