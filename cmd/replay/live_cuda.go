package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/eagergc/eagergc/pool/cuda"
	"github.com/eagergc/eagergc/sim/live"
)

// openGPU lets cfg run on a GPU: its pool takes the GPU's memory, either
// segments for our own caching pool, that go back as a whole (cuda) or in parts
// (cuda-virtual), or block by block out of the driver's stream-ordered pool
// (cuda-async), and at each wait a kernel keeps the GPU busy
// for as long as the wait was recorded to be.
func openGPU(cfg *live.Config, memory string, device int) (func() error, error) {
	d, err := cuda.Open(device)
	if err != nil {
		return nil, fmt.Errorf("live: --pool %s: %w", memory, err)
	}
	w, err := cuda.NewWork(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	closing := func() error { return errors.Join(w.Close(), d.Close()) }
	cfg.Memory = d.Space()
	cfg.Wait = func(busy time.Duration) error {
		if err := w.Spin(d.Default(), busy); err != nil {
			return err
		}
		return d.Default().Synchronize()
	}
	switch memory {
	case "cuda":
		cfg.Upstream, cfg.Direct = d.Memory(), false
		return closing, nil
	case "cuda-virtual":
		v, err := d.Virtual()
		if err != nil {
			return nil, errors.Join(err, closing())
		}
		cfg.Upstream, cfg.Direct = v, false
		return closing, nil
	}
	p, err := d.NewDriverPool(-1)
	if err != nil {
		return nil, errors.Join(err, closing())
	}
	cfg.Upstream, cfg.Direct = p.Upstream(), true
	return func() error { return errors.Join(p.Close(), closing()) }, nil
}
