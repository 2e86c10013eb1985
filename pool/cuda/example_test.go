package cuda_test

import (
	"fmt"
	"log"
	"slices"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
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

type vector = array.Array[float32]

// A model computes on one stream. Each operation has a new array for a result.
type model struct {
	memory *pool.Pool
	stream *cuda.Stream
	kernel *cuda.Kernel
}

func (m *model) subtract(a, b vector, scale float32) (vector, error) {
	out, err := array.New[float32](m.memory, a.Len(), array.On(m.stream.ID()))
	if err != nil {
		return out, err
	}
	n := uint32(a.Len())
	return out, cuda.With(out, m.stream, func(out uintptr) error {
		return cuda.With(a, m.stream, func(a uintptr) error {
			return cuda.With(b, m.stream, func(b uintptr) error {
				var args cuda.Args
				args.Ptr(out).Ptr(a).Ptr(b).Float32(scale).Uint32(n)
				return m.kernel.Launch(m.stream, cuda.Dim{X: (n + 255) / 256}, cuda.Dim{X: 256}, 0, &args)
			})
		})
	})
}

// A training loop on GPU 0 that frees nothing by hand: 2.3 GiB of intermediate
// results go through 256 MiB. The end of each step is a sync point, behind which
// a cycle may hide. It needs the build tag cuda and a GPU.
func Example_training() {
	device, err := cuda.Open(0)
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	collector, err := gc.New(gc.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer collector.Close()
	memory, err := pool.New(pool.Config{
		Upstream: device.Memory(), Space: device.Space(), Collector: collector,
		Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 256 << 20}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer memory.Close()
	pinned, err := pool.New(pool.Config{Upstream: device.Pinned(), Space: pressure.Pinned, Collector: collector})
	if err != nil {
		log.Fatal(err)
	}
	defer pinned.Close()
	device.SyncThrough(memory) // every wait for the device asks the policy
	defer device.SyncThrough(nil)
	device.StageThrough(pinned) // uploads go on beside the program
	defer device.StageThrough(nil)

	module, err := device.Load(subtract)
	if err != nil {
		log.Fatal(err)
	}
	defer module.Close()
	m := &model{memory: memory}
	if m.kernel, err = module.Kernel("subtract"); err != nil {
		log.Fatal(err)
	}
	if m.stream, err = device.NewStream(); err != nil {
		log.Fatal(err)
	}
	defer m.stream.Close()
	uploads, err := device.NewStream() // beside the loop's work
	if err != nil {
		log.Fatal(err)
	}
	defer uploads.Close()

	const n = 1 << 20
	weights, err := array.New[float32](memory, n, array.On(m.stream.ID()))
	if err == nil {
		err = weights.Fill(0)
	}
	if err != nil {
		log.Fatal(err)
	}
	samples := slices.Repeat([]float32{3}, n) // of which the weights are to find the mean
	source := func(yield func([]float32) bool) {
		for i := 0; i < 300 && yield(samples); i++ {
		}
	}
	for batch, err := range array.Ahead[array.Array[float32]](memory, 1, source, array.On(uploads.ID())) {
		if err != nil {
			log.Fatal(err)
		}
		gradient, err := m.subtract(weights, batch, 1)
		if err != nil {
			log.Fatal(err)
		}
		if weights, err = m.subtract(weights, gradient, 0.25); err != nil { // the old ones are garbage now
			log.Fatal(err)
		}
		if err := m.stream.Synchronize(); err != nil { // the end of the step
			log.Fatal(err)
		}
	}
	found := make([]float32, n)
	if err := weights.CopyOut(found); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("weights %.2f to %.2f, within the limit: %v\n", slices.Min(found), slices.Max(found), memory.Stats().ReservedPeak <= 256<<20)
}
