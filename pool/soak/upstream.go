package soak

import (
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

// switchable is a host upstream with faults that can be switched off, and a
// count of its own of what it holds.
type switchable struct {
	faulty *pooltest.Faulty
	calm   atomic.Bool
	mapped atomic.Int64 // bytes
}

func newSwitchable(seed uint64) *switchable {
	s := &switchable{}
	s.faulty = &pooltest.Faulty{
		Upstream: counted{s}, Seed: seed, OutageLength: 5, Delay: time.Millisecond,
		Rate: map[pooltest.Fault]float64{
			pooltest.FaultRefuse: 0.02, pooltest.FaultOutage: 0.002, pooltest.FaultSlow: 0.01, pooltest.FaultRelease: 0.02,
			pooltest.FaultSync: 0.05, pooltest.FaultInfo: 0.2, pooltest.FaultPanic: 0.002,
		},
	}
	return s
}

// counted is the host, counting. It does not embed: what it leaves out, such as
// Synchronize, is left out.
type counted struct{ in *switchable }

func (c counted) Allocate(bytes int64, stream uint32) (uintptr, error) {
	addr, err := pool.Host{}.Allocate(bytes, stream)
	if err == nil {
		c.in.mapped.Add(bytes)
	}
	return addr, err
}

func (c counted) Release(addr uintptr, bytes int64, stream uint32) error {
	err := pool.Host{}.Release(addr, bytes, stream)
	if err == nil {
		c.in.mapped.Add(-bytes)
	}
	return err
}

func (c counted) Part(addr uintptr, bytes int64) (uintptr, int64) {
	return pool.Host{}.Part(addr, bytes)
}

func (c counted) Info() (pressure.Info, error) { return pool.Host{}.Info() }

func (s *switchable) up() pool.Upstream {
	if s.calm.Load() {
		return counted{s}
	}
	return s.faulty
}

// Allocate, Release, Part and Info pass on, by way of the faults while they are on.
func (s *switchable) Allocate(bytes int64, stream uint32) (uintptr, error) {
	return s.up().Allocate(bytes, stream)
}

func (s *switchable) Release(addr uintptr, bytes int64, stream uint32) error {
	return s.up().Release(addr, bytes, stream)
}

func (s *switchable) Part(addr uintptr, bytes int64) (uintptr, int64) {
	return pool.Host{}.Part(addr, bytes)
}

func (s *switchable) Info() (pressure.Info, error) { return s.up().Info() }

// Synchronize has nothing to wait for, but may fail.
func (s *switchable) Synchronize() error {
	if s.calm.Load() {
		return nil
	}
	return s.faulty.Synchronize()
}

func (s *switchable) faults() map[string]int64 {
	n := map[string]int64{}
	for f := pooltest.FaultRefuse; f <= pooltest.FaultPanic; f++ {
		n[f.String()] = s.faulty.Injected(f)
	}
	return n
}
