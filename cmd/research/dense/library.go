package main

import (
	"runtime"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

// A tensor is an array of float32 that nobody frees: its memory goes back to the
// pool some time after the last reference to it is gone.
type tensor struct {
	array.Array[float32]
	addr uintptr
	n    int
}

// A library does arithmetic in the allocating style of an array library: each
// method returns a new tensor. The first error sticks, and later calls do
// nothing. One goroutine at a time.
type library struct {
	math   arithmetic
	pool   *pool.Pool
	stream uint32
	err    error
}

func (l *library) alloc(n int) (tensor, error) {
	a, err := array.New[float32](l.pool, n, array.On(l.stream))
	b, _ := a.Block()
	return tensor{Array: a, addr: b.Addr, n: n}, err
}

// arithmetic is that of one place, into memory that exists. On a GPU the
// work is queued; read waits for it.
type arithmetic interface {
	uniform(out tensor, first uint64) error
	fill(out tensor, v float32) error
	copy(out tensor, x tensor, from int) error
	axpby(out tensor, a float32, x tensor, b float32, y tensor) error
	multiply(out, x, y tensor) error
	divide(out, x, y tensor) error
	sqrtPlus(out, x tensor, eps float32) error
	addScalar(out, x, s tensor) error
	sum(out, x tensor, scale float32) error
	matvec(out, x, w tensor) error        // out[i] = x[i, :] . w
	tmatvec(out, part, x, g tensor) error // out[k] = g . x[:, k]
	read(x tensor) (float32, error)
}

// partialSums is the number of partial sums of tmatvec.
const partialSums = 64

// result allocates n floats and lets f compute them from in.
func (l *library) result(n int, f func(out tensor) error, in ...tensor) tensor {
	if l.err != nil {
		return tensor{}
	}
	out, err := l.alloc(n)
	if err == nil {
		err = f(out)
	}
	l.err = err
	for i := range in { // the work is queued: from here on stream order protects its memory
		runtime.KeepAlive(in[i].Array)
	}
	return out
}

func (l *library) uniform(n int, first uint64) tensor {
	return l.result(n, func(out tensor) error { return l.math.uniform(out, first) })
}

func (l *library) zeros(n int) tensor {
	return l.result(n, func(out tensor) error { return l.math.fill(out, 0) })
}

func (l *library) ones(n int) tensor {
	return l.result(n, func(out tensor) error { return l.math.fill(out, 1) })
}

func (l *library) copyOf(x tensor, from, n int) tensor {
	return l.result(n, func(out tensor) error { return l.math.copy(out, x, from) }, x)
}

func (l *library) axpby(a float32, x tensor, b float32, y tensor) tensor {
	return l.result(x.n, func(out tensor) error { return l.math.axpby(out, a, x, b, y) }, x, y)
}

func (l *library) multiply(x, y tensor) tensor {
	return l.result(x.n, func(out tensor) error { return l.math.multiply(out, x, y) }, x, y)
}

func (l *library) divide(x, y tensor) tensor {
	return l.result(x.n, func(out tensor) error { return l.math.divide(out, x, y) }, x, y)
}

func (l *library) sqrtPlus(x tensor, eps float32) tensor {
	return l.result(x.n, func(out tensor) error { return l.math.sqrtPlus(out, x, eps) }, x)
}

func (l *library) addScalar(x, s tensor) tensor {
	return l.result(x.n, func(out tensor) error { return l.math.addScalar(out, x, s) }, x, s)
}

func (l *library) sum(x tensor, scale float32) tensor {
	return l.result(1, func(out tensor) error { return l.math.sum(out, x, scale) }, x)
}

func (l *library) matvec(x, w tensor, rows int) tensor {
	return l.result(rows, func(out tensor) error { return l.math.matvec(out, x, w) }, x, w)
}

func (l *library) tmatvec(x, g tensor, rows int) tensor {
	cols := x.n / rows
	part := l.result(partialSums*cols, func(tensor) error { return nil })
	return l.result(cols, func(out tensor) error { return l.math.tmatvec(out, part, x, g) }, part, x, g)
}

// read waits for x, a single number.
func (l *library) read(x tensor) (v float32, err error) {
	if l.err == nil {
		v, l.err = l.math.read(x)
	}
	runtime.KeepAlive(x.Array)
	return v, l.err
}
