package cuda_test

import (
	"fmt"
	"log"
	"slices"

	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pool/cuda"
	"github.com/eagergc/eagergc/pressure"
)

// subtract is out = a - scale * b, an element to each thread.
const subtract = `
.version 6.0
.target sm_50
.address_size 64
.visible .entry subtract(.param .u64 out, .param .u64 a, .param .u64 b, .param .f32 scale, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<5>;
	.reg .b64 %d<9>;
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	ld.param.u32 %r5, [n];
	setp.ge.u32 %p1, %r4, %r5;
	@%p1 bra DONE;
	mul.wide.u32 %d1, %r4, 4;
	ld.param.u64 %d2, [a];
	ld.param.u64 %d3, [b];
	ld.param.u64 %d4, [out];
	add.u64 %d5, %d2, %d1;
	add.u64 %d6, %d3, %d1;
	add.u64 %d7, %d4, %d1;
	ld.global.f32 %f1, [%d5];
	ld.global.f32 %f2, [%d6];
	ld.param.f32 %f3, [scale];
	mul.f32 %f2, %f2, %f3;
	sub.f32 %f4, %f1, %f2;
	st.global.f32 [%d7], %f4;
DONE:
	ret;
}`

// must ends the program where there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// The shortest program: an array, a kernel and its result. It needs the build tag cuda
// and a GPU.
func Example() {
	p := must(cuda.Default(0))
	defer p.Close()
	kernel := must(p.Kernel(subtract, "subtract"))
	a := must(array.From(p.Memory, []float32{5, 6, 7}))
	err := cuda.Launch(kernel, nil, cuda.Dim{}, cuda.Dim{X: 3}, a, a, a, 0.5, a.Len())
	fmt.Println(a, err) // float32[3] in device0 memory: 2.5 3 3.5 <nil>
}

// A training loop on GPU 0 that frees nothing by hand: 2.3 GiB of intermediate
// results go through 256 MiB. The end of each step is a sync point, behind which
// a cycle may hide; the next batch is uploaded beside it. It needs the build tag cuda
// and a GPU.
func Example_training() {
	p := must(cuda.Default(0))
	defer p.Close()
	if err := p.Memory.SetLimits(pressure.Limits{Hard: pressure.Limit{Bytes: 256 << 20}}); err != nil {
		log.Fatal(err)
	}
	kernel, uploads := must(p.Kernel(subtract, "subtract")), must(p.Device.NewStream())

	// minus returns a - scale * b in a new array.
	minus := func(a, b array.Array[float32], scale float32) array.Array[float32] {
		out, n := must(array.Like(a)), a.Len()
		if err := cuda.Launch(kernel, nil, cuda.Dim{X: uint32(n+255) / 256}, cuda.Dim{X: 256}, out, a, b, scale, n); err != nil {
			log.Fatal(err)
		}
		return out
	}
	const n = 1 << 20
	weights := must(array.Zeros[float32](p.Memory, n))
	samples := slices.Repeat([]float32{3}, n) // of which the weights are to find the mean
	source := func(yield func([]float32) bool) {
		for i := 0; i < 300 && yield(samples); i++ {
		}
	}
	for batch, err := range array.Batches[array.Array[float32]](p.Memory, 1, source, array.On(uploads.ID())) {
		gradient := minus(weights, must(batch, err), 1)
		weights = minus(weights, gradient, 0.25) // the old ones are garbage now
		if err := p.Synchronize(); err != nil {  // the end of the step
			log.Fatal(err)
		}
	}
	found := must(weights.ToSlice())
	fmt.Printf("weights %.2f to %.2f, within the limit: %v\n", slices.Min(found), slices.Max(found), p.Memory.Stats().ReservedPeak <= 256<<20)
}
