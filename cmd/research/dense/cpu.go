package main

import (
	"math"
	"unsafe"
)

type cpu struct{}

func floats(x tensor) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(nil), x.addr)), x.n)
}

// What is computed element by element.
var (
	fill = op{"fill", func(_ [][]float32, v []float32) func(int) float32 {
		return func(int) float32 { return v[0] }
	}}
	axpby = op{"axpby", func(x [][]float32, v []float32) func(int) float32 {
		p, q, a, b := x[0], x[1], v[0], v[1]
		return func(i int) float32 { return a*p[i] + b*q[i] }
	}}
	multiply = op{"multiply", func(x [][]float32, _ []float32) func(int) float32 {
		return func(i int) float32 { return x[0][i] * x[1][i] }
	}}
	divide = op{"divide", func(x [][]float32, _ []float32) func(int) float32 {
		return func(i int) float32 { return x[0][i] / x[1][i] }
	}}
	sqrtPlus = op{"sqrt_plus", func(x [][]float32, v []float32) func(int) float32 {
		return func(i int) float32 { return float32(math.Sqrt(float64(x[0][i]))) + v[0] }
	}}
	addScalar = op{"add_scalar", func(x [][]float32, _ []float32) func(int) float32 {
		return func(i int) float32 { return x[0][i] + x[1][0] }
	}}
)

// set sets out[i] = f(i), on all cores when that pays.
func set(out tensor, f func(i int) float32) error {
	o := floats(out)
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			o[i] = f(i)
		}
	}
	if len(o) < 1<<16 {
		fill(0, len(o))
	} else {
		parallel(len(o), fill)
	}
	return nil
}

func (cpu) each(o *op, out tensor, x []tensor, numbers []float32) error {
	in := make([][]float32, len(x))
	for i, t := range x {
		in[i] = floats(t)
	}
	return set(out, o.at(in, numbers))
}

func (cpu) uniform(out tensor, first uint64) error {
	return set(out, func(i int) float32 { return uniform(first + uint64(i)) })
}

func (cpu) copy(out, x tensor, from int) error {
	copy(floats(out), floats(x)[from:])
	return nil
}

func (cpu) sum(out, x tensor, scale float32) error {
	var s float64
	for _, v := range floats(x) {
		s += float64(v)
	}
	floats(out)[0] = scale * float32(s)
	return nil
}

func (cpu) matvec(out, x, w tensor) error {
	o, p, q := floats(out), floats(x), floats(w)
	parallel(len(o), func(from, to int) {
		for i := from; i < to; i++ {
			row := p[i*len(q) : (i+1)*len(q)]
			var s [4]float32
			k := 0
			for ; k+4 <= len(q); k += 4 {
				for j := range s {
					s[j] += row[k+j] * q[k+j]
				}
			}
			for ; k < len(q); k++ {
				s[0] += row[k] * q[k]
			}
			o[i] = s[0] + s[1] + s[2] + s[3]
		}
	})
	return nil
}

func (cpu) tmatvec(out, part, x, g tensor) error {
	o, all, p, q := floats(out), floats(part), floats(x), floats(g)
	cols := len(o)
	slice := (len(q) + partialSums - 1) / partialSums
	parallel(partialSums, func(from, to int) {
		for j := from; j < to; j++ {
			sum := all[j*cols : (j+1)*cols]
			clear(sum)
			for i := j * slice; i < min((j+1)*slice, len(q)); i++ {
				for k, v := range p[i*cols : (i+1)*cols] {
					sum[k] += q[i] * v
				}
			}
		}
	})
	clear(o)
	for j := range partialSums {
		for k, v := range all[j*cols : (j+1)*cols] {
			o[k] += v
		}
	}
	return nil
}

func (cpu) read(x tensor) (float32, error) { return floats(x)[0], nil }
