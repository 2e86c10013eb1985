package cuda

import (
	_ "embed"
	"time"
)

//go:embed kernels.ptx
var kernelsPTX string

// Work holds a small kernel that keeps a GPU busy, for replays of recordings and for tests. It is
// safe for concurrent use.
type Work struct {
	module *Module
	spin   *Kernel
}

// NewWork loads the kernel into d.
func NewWork(d *Device) (*Work, error) {
	m, err := d.Load(kernelsPTX)
	if err != nil {
		return nil, err
	}
	spin, err := m.Kernel("spin")
	return &Work{m, spin}, err
}

// Close unloads the kernel.
func (w *Work) Close() error { return w.module.Close() }

// Spin queues work on s that takes d, to a few microseconds.
func (w *Work) Spin(s *Stream, d time.Duration) error {
	return Launch(w.spin, s, Dim{}, Dim{}, uint64(max(d, 0)))
}
