// Package gomlx gives a backend of GoMLX eager collection: its buffers, which wait for Go's
// collector, are counted by device, and cycles come before a device is full. Nobody has to call
// Finalize, and those who do lose nothing.
//
//	import _ "github.com/eagergc/eagergc/gc/with/gomlx"
//
// and GOMLX_BACKEND=eager:xla:cuda, or eager: before whatever else names a backend. The guide is README.md.
package gomlx

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/eagergc/eagergc/gc"
)

const name = "eager"

func init() {
	backends.Register(name, func(config string) (backends.Backend, error) {
		switch {
		case config == "" && slices.Contains(backends.List(), "xla"):
			config = backends.DefaultConfig
		case config == "":
			config = "go"
		case config == name || strings.HasPrefix(config, name+":"):
			return nil, fmt.Errorf("gomlx: backend %s:%s: one %s is enough", name, config, name)
		}
		inner, err := backends.NewWithConfig(config)
		if err != nil {
			return nil, err
		}
		b, err := Wrap(inner)
		if err != nil {
			inner.Finalize()
			return nil, err
		}
		return b, nil
	})
}

// A Backend is another backend whose buffers are counted. It is safe for concurrent use where the
// other one is.
type Backend struct {
	backends.Backend
	devices []*memory // by number
	host    *memory   // of shared buffers
	end     end
	reading gc.WaitPlace
}

// An end comes once, and not while a cycle's release uses the other backend.
type end struct {
	mu   sync.RWMutex
	come bool
}

// Wrap makes a backend of inner, which it takes over. Each device has a collector, by the config of its number, or
// the zero one. Space is filled in, and Limit where it is 0: by EAGERGC_DEVICE0_HARD_MEMORY_LIMIT and the like, see
// [pressure.Limits.OrFromEnv], or else 2/3 of a CUDA device's memory, a tenth less than XLA takes of it. Where
// nothing is known there is no limit until an allocation fails. Where Caps.Assist is 0 callers wait for whole cycles.
//
// Buffers that inner shares with the program are memory of the host, and so are all where it
// can share: [gc.Default] counts those, or the collector of the first config. The errors are
// those of [gc.New] and of the environment.
func Wrap(inner backends.Backend, configs ...gc.Config) (*Backend, error) {
	b := &Backend{Backend: inner, reading: gc.WaitPlace{Name: "gomlx: read"}}
	for n := range inner.NumDevices() {
		var config gc.Config
		if n < len(configs) {
			config = configs[n]
		}
		m, err := newMemory(b, n, config)
		if err != nil {
			b.close()
			return nil, err
		}
		b.devices = append(b.devices, m)
	}
	b.host = &memory{backend: b, collector: gc.Default(), shared: true}
	if inner.HasSharedBuffers() && len(b.devices) > 0 {
		b.host = b.devices[0]
	}
	return b, nil
}

// Collector returns the collector of a device, to look at and to set: its limit, its policy, its recorder.
func (b *Backend) Collector(device backends.DeviceNum) *gc.Collector { return b.of(device).collector }

// of returns the memory of a device. One that does not exist is the other backend's to refuse.
func (b *Backend) of(device backends.DeviceNum) *memory {
	if device < 0 || int(device) >= len(b.devices) {
		return b.host
	}
	return b.devices[device]
}

// Description is the other backend's, with a word before it.
func (b *Backend) Description() string { return name + " collection over " + b.Backend.Description() }

// Finalize finalizes the other backend, and ends what collects for it.
func (b *Backend) Finalize() {
	b.end.mu.Lock()
	b.end.come = true
	b.Backend.Finalize()
	b.end.mu.Unlock()
	b.close()
}

func (b *Backend) close() {
	for _, m := range b.devices {
		m.close()
	}
}

// Builder implements [backends.Backend].
func (b *Backend) Builder(name string) backends.Builder { return &builder{b.Backend.Builder(name), b} }

// BufferFinalize gives the buffer back now. A second time the other backend says what it says to that.
func (b *Backend) BufferFinalize(x backends.Buffer) error {
	_, err := with(b, x, func(own *buffer) (none struct{}, err error) {
		own.take()
		return none, b.Backend.BufferFinalize(own.held.inner)
	})
	return err
}

// BufferShape implements [backends.DataInterface].
func (b *Backend) BufferShape(x backends.Buffer) (shapes.Shape, error) {
	return with(b, x, func(own *buffer) (shapes.Shape, error) { return own.shape.Clone(), nil })
}

// BufferDeviceNum implements [backends.DataInterface].
func (b *Backend) BufferDeviceNum(x backends.Buffer) (backends.DeviceNum, error) {
	return with(b, x, func(own *buffer) (backends.DeviceNum, error) { return own.device, nil })
}

// BufferToFlatData implements [backends.DataInterface]. It waits for the device, so that a cycle may run beside it.
func (b *Backend) BufferToFlatData(x backends.Buffer, flat any) error {
	_, err := with(b, x, func(own *buffer) (none struct{}, err error) {
		return none, b.of(own.device).collector.Sync(&b.reading, func() error {
			return b.Backend.BufferToFlatData(own.held.inner, flat)
		})
	})
	return err
}

// BufferFromFlatData implements [backends.DataInterface].
func (b *Backend) BufferFromFlatData(device backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	return b.allocate(device, shape, func() (backends.Buffer, error) {
		return b.Backend.BufferFromFlatData(device, flat, shape)
	})
}

// BufferCopyToDevice implements [backends.DataInterface].
func (b *Backend) BufferCopyToDevice(x backends.Buffer, device backends.DeviceNum) (backends.Buffer, error) {
	return with(b, x, func(own *buffer) (backends.Buffer, error) {
		return b.allocate(device, *own.shape, func() (backends.Buffer, error) {
			return b.Backend.BufferCopyToDevice(own.held.inner, device)
		})
	})
}

// NewSharedBuffer implements [backends.DataInterface].
func (b *Backend) NewSharedBuffer(device backends.DeviceNum, shape shapes.Shape) (backends.Buffer, any, error) {
	inner, flat, err := b.Backend.NewSharedBuffer(device, shape)
	if err != nil {
		return nil, nil, err
	}
	return b.track(b.host, inner, &shape, device), flat, nil
}

// BufferData implements [backends.DataInterface].
func (b *Backend) BufferData(x backends.Buffer) (flat any, err error) {
	return with(b, x, func(own *buffer) (any, error) { return b.Backend.BufferData(own.held.inner) })
}

// allocate makes one buffer, by the ladder.
func (b *Backend) allocate(device backends.DeviceNum, shape shapes.Shape, from func() (backends.Buffer, error)) (backends.Buffer, error) {
	var inner backends.Buffer
	m := b.of(device)
	err := m.climb(int64(shape.Memory()), 0, func() (err error) {
		inner, err = from()
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.track(m, inner, &shape, device), nil
}
