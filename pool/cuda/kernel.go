package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A Module is loaded GPU code.
type Module struct {
	dev    *Device
	h      handle
	params map[string][]string // types of the parameters of each kernel, if they are known
}

// Load loads PTX text or a cubin into the device. PTX is compiled by the driver, which takes
// milliseconds the first time.
func (d *Device) Load(image string) (m *Module, err error) {
	m = &Module{dev: d, params: parametersOf(image)}
	err = d.retry(func() error { m.h, err = moduleLoad(d, image); return err })
	return m, err
}

// Close unloads the module and the kernels found in it.
func (m *Module) Close() error { return moduleUnload(m.dev, m.h) }

// Kernel returns the module's kernel of that name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	h, err := moduleFunction(m.dev, m.h, name)
	return &Kernel{m.dev, h, name, m.params[name]}, err
}

// A Kernel is a function that runs on the GPU.
type Kernel struct {
	dev    *Device
	h      handle
	name   string
	params []string // their types in PTX; nil: unknown
}

// Dim is the extent of a grid or of a block of threads. A zero counts as 1.
type Dim struct{ X, Y, Z uint32 }

func (d Dim) orOne() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// Launch runs the kernel on s with arguments that are packed already: it queues the work and
// returns. Shared is the bytes of dynamic shared memory per block. The function [Launch] takes
// arrays.
func (k *Kernel) Launch(s *Stream, grid, block Dim, shared int, args *Args) error {
	if s.dev.index != k.dev.index {
		return fmt.Errorf("cuda: kernel %s of %v launched on a stream of %v: load the module there too", k.name, k.dev, s.dev)
	}
	if err := s.takes(""); err != nil {
		return err
	}
	return launch(s, k.h, grid.orOne(), block.orOne(), shared, args.buf[:args.n])
}

// Args are the arguments of a launch, in order. The zero value is empty; Reset empties it again, so
// one value can serve many launches of one goroutine.
type Args struct {
	buf [192]byte
	n   int
}

// Reset removes all arguments and returns a.
func (a *Args) Reset() *Args {
	a.n = 0
	return a
}

// next makes room for an argument that is aligned to its own size.
func (a *Args) next(size int) []byte {
	at := (a.n + size - 1) &^ (size - 1)
	if at+size > len(a.buf) {
		panic("cuda: more than 192 bytes of kernel arguments")
	}
	a.n = at + size
	return a.buf[at:a.n]
}

// Ptr adds an address of device memory.
func (a *Args) Ptr(p uintptr) *Args { return a.Uint64(uint64(p)) }

// Uint64 adds a 64-bit integer.
func (a *Args) Uint64(v uint64) *Args {
	binary.NativeEndian.PutUint64(a.next(8), v)
	return a
}

// Uint32 adds a 32-bit integer.
func (a *Args) Uint32(v uint32) *Args {
	binary.NativeEndian.PutUint32(a.next(4), v)
	return a
}

// Float32 adds a float.
func (a *Args) Float32(v float32) *Args { return a.Uint32(math.Float32bits(v)) }
