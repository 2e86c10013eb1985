package main

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
)

// A program sets itself up on b, with sizes divided by small, and returns its step. It panics on
// errors. It passes tensors that it no longer needs to done, which finalizes or forgets them.
type program func(b backends.Backend, small int, done func(...*tensors.Tensor)) (step func() error)

var programs = map[string]program{
	"array": arrays, "cache": cache, "dense": dense, "train": training, "serve": serving,
}

// try calls f and returns its panic as an error, because GoMLX's Must functions panic.
func try(f func()) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("%v", e)
		}
	}()
	f()
	return nil
}

// noise is the source of random tensors.
var noise []float32

func numbers(n int) []float32 {
	for len(noise) < n {
		noise = append(noise, (rand.Float32()-0.5)/16)
	}
	return noise[:n]
}

// random returns a tensor that is only on the first device.
func random(b backends.Backend, dims ...int) *tensors.Tensor {
	shape := shapes.Make(dtypes.Float32, dims...)
	buffer, err := b.BufferFromFlatData(0, numbers(shape.Size()), shape)
	if err != nil {
		panic(err)
	}
	t, err := tensors.FromBuffer(b, buffer)
	if err != nil {
		panic(err)
	}
	return t
}

// arrays runs a product, tanh, a scale and a sum. Each result is an array.
func arrays(b backends.Backend, small int, done func(...*tensors.Tensor)) func() error {
	product := MustNewExec(b, func(x, w *Node) *Node { return Dot(x, w) })
	bend := MustNewExec(b, func(x *Node) *Node { return Tanh(x) })
	scale := MustNewExec(b, func(x *Node) *Node { return MulScalar(x, 0.5) })
	sum := MustNewExec(b, func(x, y *Node) *Node { return Add(x, y) })
	w, first := random(b, 4096/small, 4096/small), random(b, 4096/small, 4096/small)
	x := first
	return func() error {
		return try(func() {
			y := product.MustExec1(x, w)
			z := bend.MustExec1(y)
			s := scale.MustExec1(z)
			next := sum.MustExec1(s, first)
			done(y, z, s)
			if x != first {
				done(x)
			}
			x = next
		})
	}
}

// cache rewrites a row of a cache of 64 MiB and reads all of it by attention, as a language model
// does for each token.
func cache(b backends.Backend, small int, done func(...*tensors.Tensor)) func() error {
	rows, width := 16384/small, 1024/small
	write := MustNewExec(b, func(cache, row, at *Node) *Node {
		return DynamicUpdateSlice(cache, row, []*Node{at, ZerosLike(at)})
	})
	read := MustNewExec(b, func(cache, query *Node) *Node {
		return Dot(Softmax(Dot(query, Transpose(cache, 0, 1))), cache)
	})
	all, row, n := random(b, rows, width), random(b, 1, width), 0
	return func() error {
		return try(func() {
			next := write.MustExec1(all, row, int32(n%rows))
			n++
			answer := read.MustExec1(next, row)
			done(all, row)
			all, row = next, answer
		})
	}
}

// together calls f with 0 to n-1 at once, and returns the first error.
func together(n int, f func(int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// dense trains two layers, operation by operation, with momentum. It copies batches from the data.
func dense(b backends.Backend, small int, done func(...*tensors.Tensor)) func() error {
	batch, in, hidden, out := 4096/small, 1024/small, 2048/small, 256/small
	one := func(f func(x *Node) *Node) *Exec { return MustNewExec(b, f) }
	two := func(f func(x, y *Node) *Node) *Exec { return MustNewExec(b, f) }
	cuts := make([]*Exec, 4)
	for i := range cuts {
		cuts[i] = one(func(data *Node) *Node { return Slice(data, AxisRange(i*batch, (i+1)*batch)) })
	}
	product, relu, minus := two(func(x, w *Node) *Node { return Dot(x, w) }), one(activations.Relu), two(func(x, y *Node) *Node { return Sub(x, y) })
	turned := two(func(x, y *Node) *Node { return Dot(Transpose(x, 0, 1), y) })
	back := MustNewExec(b, func(d, w, h *Node) *Node {
		return Where(GreaterThan(h, ZerosLike(h)), Dot(d, Transpose(w, 0, 1)), ZerosLike(h))
	})
	momentum := two(func(m, g *Node) *Node { return Add(MulScalar(m, 0.9), g) })
	update := two(func(w, m *Node) *Node { return Sub(w, MulScalar(m, 1e-6)) })

	x, y := random(b, len(cuts)*batch, in), random(b, len(cuts)*batch, out)
	weights := []*tensors.Tensor{random(b, in, hidden), random(b, hidden, out)}
	moments := []*tensors.Tensor{random(b, in, hidden), random(b, hidden, out)}
	for _, cut := range cuts { // compiles
		done(cut.MustExec1(x), cut.MustExec1(y))
	}
	draw := rand.New(rand.NewPCG(1, 2))
	return func() error {
		return try(func() {
			cut := cuts[draw.IntN(len(cuts))]
			bx, by := cut.MustExec1(x), cut.MustExec1(y)
			z := product.MustExec1(bx, weights[0])
			h := relu.MustExec1(z)
			p := product.MustExec1(h, weights[1])
			d := minus.MustExec1(p, by)
			e := back.MustExec1(d, weights[1], h)
			grads := []*tensors.Tensor{turned.MustExec1(bx, e), turned.MustExec1(h, d)}
			for i, g := range grads {
				m := momentum.MustExec1(moments[i], g)
				w := update.MustExec1(weights[i], m)
				done(moments[i], weights[i], g)
				moments[i], weights[i] = m, w
			}
			done(bx, by, z, h, p, d, e)
		})
	}
}

// training runs GoMLX's trainer on a convolutional network as in its example cifar, with larger,
// made-up images. The trainer finalizes its tensors itself.
func training(b backends.Backend, small int, _ func(...*tensors.Tensor)) func() error {
	const classes = 10
	batch, side := max(2, 256/small), max(16, 128/small)
	model := func(ctx *context.Context, _ any, inputs []*Node) []*Node {
		x := inputs[0]
		for i, filters := range []int{32, 64, 128} {
			ctx := ctx.Inf("conv-%d", i)
			x = activations.Relu(layers.Convolution(ctx, x).Filters(filters).KernelSize(3).Strides(2).PadSame().Done())
		}
		return []*Node{layers.Dense(ctx, Reshape(x, x.Shape().Dimensions[0], -1), true, classes)}
	}
	trainer := train.NewTrainer(b, context.New(), model, losses.SparseCategoricalCrossEntropyLogits, optimizers.Adam().Done(), nil, nil)
	loop := train.NewLoop(trainer)
	data := &images{batch: batch, side: side, classes: classes, pixels: tensors.FromFlatDataAndDimensions(numbers(batch*side*side*3), batch, side, side, 3)}
	return func() error {
		_, err := loop.RunSteps(data, 1)
		return err
	}
}

// An images is a data set whose batches are copies.
type images struct {
	batch, side, classes int
	pixels               *tensors.Tensor
}

func (d *images) Name() string { return "images" }
func (d *images) Reset()       {}
func (d *images) Yield() (spec any, inputs, labels []*tensors.Tensor, err error) {
	of := make([]int32, d.batch)
	for i := range of {
		of[i] = rand.Int32N(int32(d.classes))
	}
	clone, err := d.pixels.LocalClone()
	return d, []*tensors.Tensor{clone}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(of, d.batch, 1)}, err
}

// serving answers four clients at once, with 1 to 32 pictures in a request, by three stages of a
// model.
func serving(b backends.Backend, small int, done func(...*tensors.Tensor)) func() error {
	side, width := max(8, 128/small), 1024/small
	weights := []*tensors.Tensor{random(b, side*side*3, width), random(b, width, 4*width), random(b, 4*width, 64)}
	normal := MustNewExec(b, func(x *Node) *Node { return Reshape(Sub(x, ReduceAllMean(x)), x.Shape().Dimensions[0], -1) })
	layer := MustNewExec(b, func(x, w *Node) *Node { return Tanh(Dot(x, w)) })
	sizes := []int{1, 4, 16, 32}
	pictures := make([][]float32, len(sizes))
	for i, n := range sizes {
		pictures[i] = make([]float32, n*side*side*3)
	}
	request := func(i int) error {
		return try(func() {
			x := tensors.FromFlatDataAndDimensions(pictures[i], sizes[i], side, side, 3)
			y := normal.MustExec1(x)
			done(x)
			for _, w := range weights {
				next := layer.MustExec1(y, w)
				done(y)
				y = next
			}
			tensors.MustCopyFlatData[float32](y)
			done(y)
		})
	}
	for i := range sizes { // compiles, and moves the weights, which no two may at once
		if err := request(i); err != nil {
			panic(err)
		}
	}
	draw := rand.New(rand.NewPCG(1, 2))
	return func() error {
		next := []int{draw.IntN(len(sizes)), draw.IntN(len(sizes)), draw.IntN(len(sizes)), draw.IntN(len(sizes))}
		return together(len(next), func(client int) error { return request(next[client]) })
	}
}
