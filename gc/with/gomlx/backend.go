// Package gomlx adds eager collection to a backend of GoMLX. It counts the buffers of each device,
// and runs cycles before a device is full. Programs need not call Finalize, but may do so.
//
//	import _ "github.com/eagergc/eagergc/gc/with/gomlx"
//
// To use it, set GOMLX_BACKEND=eager:xla:cuda, or put eager: before the name of another backend.
// The guide is README.md.
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

// A Backend wraps another backend and counts its buffers. It is safe for concurrent use if the
// other backend is.
type Backend struct {
	backends.Backend
	devices []*memory // by number
	host    *memory   // of shared buffers
	end     end
	reading gc.WaitPlace
}

// An end says whether the other backend is finalized. Its lock keeps that from happening while a
// release uses the backend.
type end struct {
	mu   sync.RWMutex
	come bool
}

// Wrap returns a backend over inner, which then belongs to it. Device n has a collector with
// configs[n], or with the zero config. Wrap sets Space. If Limit is 0, Wrap takes it from
// EAGERGC_DEVICE0_HARD_MEMORY_LIMIT and its like: see [pressure.Limits.OrFromEnv]. Without a
// variable it is 67.5 % of a CUDA device's memory, a tenth less than XLA takes. On other
// accelerators there is no limit until an allocation fails. If Caps.Assist is 0, callers wait for
// whole cycles.
//
// Buffers that inner shares with the program are host memory. If inner can share, all its buffers
// are. [gc.Default] counts those, or the collector of the first config. The errors are those of
// [gc.New] and of the environment.
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

// Collector returns the collector of a device. Callers may change its limit, policy and recorder.
func (b *Backend) Collector(device backends.DeviceNum) *gc.Collector { return b.of(device).collector }

// of returns the memory of a device. The other backend refuses devices that do not exist.
func (b *Backend) of(device backends.DeviceNum) *memory {
	if device < 0 || int(device) >= len(b.devices) {
		return b.host
	}
	return b.devices[device]
}

// Description returns the other backend's description after a prefix.
func (b *Backend) Description() string { return name + " collection over " + b.Backend.Description() }

// Finalize finalizes the other backend and closes the collectors.
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

// BufferFinalize frees the buffer now. A second call returns the other backend's error.
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

// BufferToFlatData implements [backends.DataInterface]. It waits for the device, and a cycle may
// run during the wait.
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

// allocate makes one buffer. If memory is short it climbs the ladder.
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
