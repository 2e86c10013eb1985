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

// An op computes out[i] from element i of its operands and from numbers. A GPU has a kernel
// of its name, which takes these in this order.
type op struct {
	kernel string
	at     func(x [][]float32, v []float32) func(i int) float32 // on the host
}

// arithmetic is that of one place, into memory that exists. On a GPU the
// work is queued; read waits for it.
type arithmetic interface {
	uniform(out tensor, first uint64) error
	each(o *op, out tensor, x []tensor, numbers []float32) error
	copy(out tensor, x tensor, from int) error
	sum(out, x tensor, scale float32) error
	matvec(out, x, w tensor) error        // out[i] = x[i, :] . w
	tmatvec(out, part, x, g tensor) error // out[k] = g . x[:, k]
	read(x tensor) (float32, error)
}

const partialSums = 64

// result allocates n floats and lets f compute them from in.
func (l *library) result(n int, f func(out tensor) error, in ...tensor) tensor {
	if l.err != nil {
		return tensor{}
	}
	a, err := array.New[float32](l.pool, n, array.On(l.stream))
	b, _ := a.Block()
	out := tensor{Array: a, addr: b.Addr, n: n}
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

func (l *library) fill(n int, v float32) tensor {
	return l.result(n, func(out tensor) error { return l.math.each(&fill, out, nil, []float32{v}) })
}

// each is an op of tensors of one length, but for one that is a number.
func (l *library) each(o *op, x []tensor, numbers ...float32) tensor {
	return l.result(x[0].n, func(out tensor) error { return l.math.each(o, out, x, numbers) }, x...)
}

func (l *library) axpby(a float32, x tensor, b float32, y tensor) tensor {
	return l.each(&axpby, []tensor{x, y}, a, b)
}

func (l *library) copyOf(x tensor, from, n int) tensor {
	return l.result(n, func(out tensor) error { return l.math.copy(out, x, from) }, x)
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
