package main

import (
	"math"
	"unsafe"
)

// cpu computes on host memory.
type cpu struct{}

// floats is the memory of x.
func floats(x tensor) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(nil), x.addr)), x.n)
}

// each sets out[i] = f(i), on all cores when that pays.
func each(out tensor, f func(i int) float32) error {
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

func (cpu) uniform(out tensor, first uint64) error {
	return each(out, func(i int) float32 { return uniform(first + uint64(i)) })
}

func (cpu) fill(out tensor, v float32) error {
	return each(out, func(int) float32 { return v })
}

func (cpu) copy(out, x tensor, from int) error {
	copy(floats(out), floats(x)[from:])
	return nil
}

func (cpu) axpby(out tensor, a float32, x tensor, b float32, y tensor) error {
	p, q := floats(x), floats(y)
	return each(out, func(i int) float32 { return a*p[i] + b*q[i] })
}

func (cpu) multiply(out, x, y tensor) error {
	p, q := floats(x), floats(y)
	return each(out, func(i int) float32 { return p[i] * q[i] })
}

func (cpu) divide(out, x, y tensor) error {
	p, q := floats(x), floats(y)
	return each(out, func(i int) float32 { return p[i] / q[i] })
}

func (cpu) sqrtPlus(out, x tensor, eps float32) error {
	p := floats(x)
	return each(out, func(i int) float32 { return float32(math.Sqrt(float64(p[i]))) + eps })
}

func (cpu) addScalar(out, x, s tensor) error {
	p, v := floats(x), floats(s)[0]
	return each(out, func(i int) float32 { return p[i] + v })
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
