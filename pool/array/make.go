package array

import "github.com/eagergc/eagergc/pool"

// Zeros returns an array of n zeroes: see [New].
func Zeros[T any](p *pool.Pool, n int, on ...On) (Array[T], error) {
	return made(p, n, on, func(a Array[T]) error { return a.Fill(*new(T)) })
}

// From returns an array with a copy of the elements of a slice: see [New].
func From[T any](p *pool.Pool, from []T, on ...On) (Array[T], error) {
	return made(p, len(from), on, func(a Array[T]) error { return a.CopyIn(from) })
}

// Like returns an array of as many elements as a, in its pool. The memory still has the bytes of
// its last user: see [New]. The zero value is like itself.
func Like[T any](a Array[T], on ...On) (Array[T], error) {
	if a.m == nil {
		return a, nil
	}
	return New[T](a.m.pool, a.n, on...)
}

// made returns a new array that fill has filled, or frees it if that fails.
func made[T any](p *pool.Pool, n int, on []On, fill func(Array[T]) error) (Array[T], error) {
	a, err := New[T](p, n, on...)
	if err != nil {
		return Array[T]{}, err
	}
	if err := fill(a); err != nil {
		a.Free()
		return Array[T]{}, err
	}
	return a, nil
}

// Clone returns a copy of the array in a pool. The pool may be another one: the elements then go by
// way of the host if they must. It fails with [ErrFreed] after Free, and as [New] does.
func (a Array[T]) Clone(p *pool.Pool, on ...On) (Array[T], error) {
	return made(p, a.n, on, func(to Array[T]) error {
		switch {
		case a.n == 0:
			return a.with(nothing)
		case to.m.here:
			return to.Do(a.CopyOut)
		case a.m.here:
			return a.Do(to.CopyIn)
		case a.m.pool.Space() == p.Space():
			return to.CopyFrom(a)
		}
		s, err := a.ToSlice()
		if err != nil {
			return err
		}
		return to.CopyIn(s)
	})
}

// ToSlice returns a copy of the elements in the Go heap. It fails with [ErrFreed] after Free.
func (a Array[T]) ToSlice() ([]T, error) {
	s := make([]T, a.n)
	if err := a.CopyOut(s); err != nil {
		return nil, err
	}
	return s, nil
}
