package pool

import (
	"fmt"
	"math"
)

// Zeros returns an array of n zeroes: see [NewArray].
func Zeros[T any](p *Pool, n int, stream uint32) (Array[T], error) {
	return made(p, n, stream, func(a Array[T]) error {
		var zero T
		return a.Fill(zero)
	})
}

// FromSlice returns an array with a copy of the elements of a slice: see
// [NewArray].
func FromSlice[T any](p *Pool, from []T, stream uint32) (Array[T], error) {
	return made(p, len(from), stream, func(a Array[T]) error { return a.CopyIn(from) })
}

// made returns a new array that fill has filled, or frees it if that fails.
func made[T any](p *Pool, n int, stream uint32, fill func(Array[T]) error) (Array[T], error) {
	a, err := NewArray[T](p, n, stream)
	if err != nil {
		return Array[T]{}, err
	}
	if err := fill(a); err != nil {
		a.Free()
		return Array[T]{}, err
	}
	return a, nil
}

// ToSlice returns a copy of the elements in the Go heap. It fails with [ErrFreed]
// after Free.
func (a Array[T]) ToSlice() ([]T, error) {
	s := make([]T, a.n)
	if err := a.CopyOut(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Clone returns a copy of the array in a pool, for work of stream. The pool may be
// another one: the elements then go by way of the host if they must. It fails with
// [ErrFreed] after Free, and as [NewArray] does.
func (a Array[T]) Clone(p *Pool, stream uint32) (Array[T], error) {
	return made(p, a.n, stream, func(to Array[T]) error {
		switch {
		case a.n == 0:
			return nil
		case addressable(p.cfg):
			return to.Do(a.CopyOut)
		case addressable(a.m.pool.cfg):
			return a.Do(to.CopyIn)
		case a.m.pool.cfg.Space == p.cfg.Space:
			return to.CopyFrom(a)
		}
		s, err := a.ToSlice()
		if err != nil {
			return err
		}
		return to.CopyIn(s)
	})
}

// Real is the types of elements that [Converted] converts between.
type Real interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint | ~float32 | ~float64
}

// Converted returns an array of the elements of a slice, converted one by one: of
// float32 from float64, for example, which takes half the memory and is faster on
// a GPU. Conversions are those of Go, and those of [Float16] round to the nearest.
// The slice is converted piece by piece, so no second copy of it is made. See
// [NewArray].
func Converted[To, From Real](p *Pool, from []From, stream uint32) (Array[To], error) {
	const piece = 1 << 16 // elements
	return made(p, len(from), stream, func(a Array[To]) error {
		buffer := make([]To, min(len(from), piece))
		for at := 0; at < len(from); at += piece {
			part := from[at:min(len(from), at+piece)]
			convert(buffer[:len(part)], part)
			if err := a.View(at, at+len(part)).CopyIn(buffer[:len(part)]); err != nil {
				return err
			}
		}
		return nil
	})
}

func convert[To, From Real](to []To, from []From) {
	switch to := any(to).(type) {
	case []Float16:
		for i, x := range from {
			to[i] = ToFloat16(float32(value(x)))
		}
		return
	}
	if _, half := any(from).([]Float16); half {
		for i, x := range from {
			to[i] = To(value(x))
		}
		return
	}
	for i, x := range from {
		to[i] = To(x)
	}
}

// value is the number that x stands for.
func value[T Real](x T) float64 {
	if h, half := any(x).(Float16); half {
		return float64(h.Float32())
	}
	return float64(x)
}

// A Float16 is a half-precision number (IEEE 754 binary16) as GPUs use it: 11
// significant bits, up to 65504. The processor does not compute with it:
// [ToFloat16] and [Float16.Float32] convert.
type Float16 uint16

// ToFloat16 returns the nearest half-precision number, the even one of two; beyond
// the largest one it is infinite.
func ToFloat16(f float32) Float16 {
	b := math.Float32bits(f)
	sign := Float16(b >> 16 & 0x8000)
	exponent, fraction := int(b>>23&0xff)-127+15, b&0x7fffff
	switch {
	case b&0x7fffffff > 0x7f800000: // not a number
		return sign | 0x7e00
	case exponent >= 31:
		return sign | 0x7c00
	case exponent < -10: // less than half of the smallest one
		return sign
	}
	drop := 13
	if exponent <= 0 { // below the smallest normal number
		fraction |= 0x800000
		drop += 1 - exponent
		exponent = 0
	}
	half := uint32(exponent)<<10 + fraction>>drop
	switch rest, middle := fraction&(1<<drop-1), uint32(1)<<(drop-1); {
	case rest > middle, rest == middle && half&1 == 1:
		half++ // into the exponent if need be, which is right
	}
	return sign | Float16(half)
}

// Float32 returns the number, exactly.
func (h Float16) Float32() float32 {
	sign, exponent, fraction := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0:
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// String returns the number in decimal.
func (h Float16) String() string { return fmt.Sprint(h.Float32()) }
