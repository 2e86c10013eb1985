package cuda

import (
	_ "embed"
	"sync"
	"time"
)

//go:embed kernels.ptx
var kernelsPTX string

// Work holds small kernels that keep a GPU busy and check its memory, for replays of recordings and
// for tests. It is safe for concurrent use.
type Work struct {
	module              *Module
	spin, stamp, verify *Kernel
	args                sync.Pool
}

// NewWork loads the kernels into d.
func NewWork(d *Device) (*Work, error) {
	m, err := d.Load(kernelsPTX)
	if err != nil {
		return nil, err
	}
	w := &Work{module: m, args: sync.Pool{New: func() any { return new(Args) }}}
	for name, k := range map[string]**Kernel{"spin": &w.spin, "stamp": &w.stamp, "verify": &w.verify} {
		if *k, err = m.Kernel(name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Close unloads the kernels.
func (w *Work) Close() error { return w.module.Close() }

func (w *Work) launch(k *Kernel, s *Stream, grid, block uint32, set func(*Args)) error {
	args := w.args.Get().(*Args)
	defer w.args.Put(args)
	set(args.Reset())
	return k.Launch(s, Dim{X: grid}, Dim{X: block}, 0, args)
}

// Spin queues work on s that takes d, to a few microseconds.
func (w *Work) Spin(s *Stream, d time.Duration) error {
	return w.launch(w.spin, s, 1, 1, func(a *Args) { a.Uint64(uint64(max(d, 0))) })
}
