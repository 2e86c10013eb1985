package main

import (
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/eagergc/eagergc/pool/cuda"
)

//go:embed kernels.ptx
var kernelsPTX string

// gpu computes on one stream of one device with the kernels of kernels.cu. One
// goroutine at a time.
type gpu struct {
	stream  *cuda.Stream
	module  *cuda.Module
	kernels map[string]*cuda.Kernel
	args    cuda.Args
	one     *cuda.HostBuffer // where read puts its number
}

func newGPU(s *cuda.Stream) (*gpu, error) {
	mod, err := s.Device().Load(kernelsPTX)
	if err != nil {
		return nil, err
	}
	g := &gpu{stream: s, module: mod, kernels: map[string]*cuda.Kernel{}}
	for _, name := range []string{"fill_uniform", "fill", "axpby", "multiply", "divide", "sqrt_plus", "add_scalar", "sum",
		"matvec", "tmatvec_part", "tmatvec_sum"} {
		if g.kernels[name], err = mod.Kernel(name); err != nil {
			return nil, err
		}
	}
	g.one, err = s.Device().NewHostBuffer(4)
	return g, err
}

const threads = 256

// blocks is the number of blocks that gives n threads.
func blocks(n int) cuda.Dim { return cuda.Dim{X: uint32((n + threads - 1) / threads)} }

// run queues a kernel of which the first two arguments are out and n.
func (g *gpu) run(name string, grid cuda.Dim, out tensor, n int, more func(*cuda.Args)) error {
	args := g.args.Reset().Ptr(out.addr).Uint64(uint64(n))
	more(args)
	return g.kernels[name].Launch(g.stream, grid, cuda.Dim{X: threads}, 0, args)
}

func (g *gpu) uniform(out tensor, first uint64) error {
	grid := blocks(min(out.n, 1<<20))
	return g.run("fill_uniform", grid, out, out.n, func(a *cuda.Args) { a.Uint64(first) })
}

func (g *gpu) each(o *op, out tensor, x []tensor, numbers []float32) error {
	return g.run(o.kernel, blocks(out.n), out, out.n, func(a *cuda.Args) {
		for _, t := range x {
			a.Ptr(t.addr)
		}
		for _, v := range numbers {
			a.Float32(v)
		}
	})
}

func (g *gpu) copy(out, x tensor, from int) error {
	return g.stream.Copy(out.addr, x.addr+uintptr(4*from), int64(4*out.n))
}

func (g *gpu) sum(out, x tensor, scale float32) error {
	args := g.args.Reset().Ptr(out.addr).Uint64(uint64(x.n)).Ptr(x.addr).Float32(scale)
	return g.kernels["sum"].Launch(g.stream, cuda.Dim{X: 1}, cuda.Dim{X: 1024}, 0, args)
}

func (g *gpu) matvec(out, x, w tensor) error {
	return g.run("matvec", blocks(32*out.n), out, out.n, func(a *cuda.Args) {
		a.Uint64(uint64(w.n)).Ptr(x.addr).Ptr(w.addr)
	})
}

func (g *gpu) tmatvec(out, part, x, gr tensor) error {
	grid := blocks(out.n)
	grid.Y = partialSums
	if err := g.run("tmatvec_part", grid, part, gr.n, func(a *cuda.Args) {
		a.Uint64(uint64(out.n)).Ptr(x.addr).Ptr(gr.addr)
	}); err != nil {
		return err
	}
	return g.run("tmatvec_sum", blocks(out.n), out, out.n, func(a *cuda.Args) { a.Ptr(part.addr).Uint32(partialSums) })
}

// read copies the number to pinned memory and waits for it.
func (g *gpu) read(x tensor) (float32, error) {
	if err := g.stream.Copy(g.one.Addr(), x.addr, 4); err != nil {
		return 0, err
	}
	if err := g.stream.Synchronize(); err != nil {
		return 0, fmt.Errorf("dense: waiting for the loss: %w", err)
	}
	return math.Float32frombits(g.one.Uint32(0)), nil
}

func (g *gpu) close() error { return errors.Join(g.one.Close(), g.module.Close()) }
