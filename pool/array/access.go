package array

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"unsafe"
)

// Do calls f with the elements as a slice, and returns f's error. The slice is valid until f
// returns; a Free meanwhile takes effect then. Do first waits for queued work that uses the memory:
// see [Settler]. It fails with [ErrFreed] after Free, and with [ErrReach] if the processor cannot
// address the memory.
func (a Array[T]) Do(f func([]T) error) error {
	return a.with(func(m *memory) error {
		if err := m.settle(); err != nil {
			return err
		}
		return f(a.elements())
	})
}

// At returns element i. It waits for queued work that uses the memory. If no work was noted since
// the last wait, it calls no driver and takes about 20 ns. An element of a slice within [Array.Do]
// takes less than 1 ns. At panics if i is out of range, and fails as Do does.
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
		panic(fmt.Sprintf("array: index %d of an array of %d", i, a.n))
	}
	if err := a.m.use(); err != nil {
		return nil, err
	}
	if err := a.m.settle(); err != nil {
		a.m.done()
		return nil, err
	}
	return (*T)(pointer(a.addr() + uintptr(i)*unsafe.Sizeof(*new(T)))), nil
}

// All yields the elements with their indexes. Memory of a device is copied to the host first, all
// of it. All panics with the error where [Array.CopyOut] fails: after Free, for example.
func (a Array[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		loop := func(elements []T) error {
			for i, v := range elements {
				if !yield(i, v) {
					break
				}
			}
			return nil
		}
		err := error(nil)
		if a.m == nil || a.m.here {
			err = a.Do(loop)
		} else if s, e := a.ToSlice(); e == nil {
			err = loop(s)
		} else {
			err = e
		}
		if err != nil {
			panic(err)
		}
	}
}

const shown = 6 // elements that String shows

// String returns the type and number of the elements, the space and the first elements: "float32[3]
// in host memory: 1 2 3". To read them it waits as [Array.CopyOut] does.
func (a Array[T]) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v[%d]", reflect.TypeFor[T](), a.n)
	if a.m == nil {
		return b.String()
	}
	fmt.Fprintf(&b, " in %v memory", a.m.pool.Space())
	first, err := a.View(0, min(a.n, shown)).ToSlice()
	if err != nil {
		return fmt.Sprintf("%s (%v)", b.String(), err)
	}
	for i, v := range first {
		b.WriteString([]string{": ", " "}[min(i, 1)])
		fmt.Fprint(&b, v)
	}
	if a.n > shown {
		b.WriteString(" ...")
	}
	return b.String()
}
