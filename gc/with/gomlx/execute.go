package gomlx

import (
	"runtime"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/eagergc/eagergc/gc"
)

// A builder compiles to an executable.
type builder struct {
	backends.Builder
	backend *Backend
}

func (b *builder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	name := b.Name() // Compile may forget it
	inner, err := b.Builder.Compile(outputs, shardings)
	if err != nil {
		return nil, err
	}
	e := &executable{Executable: inner, backend: b.backend, outputs: inner.Outputs(), place: gc.WaitPlace{Name: "gomlx: " + name}}
	for _, shape := range e.outputs {
		e.bytes += int64(shape.Memory())
	}
	return e, nil
}

// An executable counts its outputs. Its executions wait for the device, and cycles may run during
// them.
type executable struct {
	backends.Executable
	backend *Backend
	outputs []shapes.Shape
	bytes   int64 // of the outputs
	place   gc.WaitPlace
}

// Execute implements [backends.Executable]. An execution that runs out of memory has not taken its
// inputs. If it had, the other backend would refuse the second try.
func (e *executable) Execute(inputs []backends.Buffer, donate []bool, device backends.DeviceNum) ([]backends.Buffer, error) {
	raw := make([]backends.Buffer, len(inputs))
	for i, x := range inputs {
		own, err := e.backend.own(x)
		if err != nil {
			return nil, err
		}
		raw[i] = own.held.inner
	}
	var outputs []backends.Buffer
	m := e.backend.of(device)
	err := m.collector.Sync(&e.place, func() error {
		return m.climb(e.bytes, e.place.Expected(), func() (err error) {
			outputs, err = e.Executable.Execute(raw, donate, device)
			return err
		})
	})
	runtime.KeepAlive(inputs)
	if err != nil {
		return nil, err
	}
	for i, taken := range donate {
		if taken {
			inputs[i].(*buffer).take()
		}
	}
	return outputs, e.track(outputs, device)
}

// track replaces the other backend's buffers by ours, each with its device. An executable on
// several devices has all outputs on each device.
func (e *executable) track(outputs []backends.Buffer, device backends.DeviceNum) (err error) {
	for i, inner := range outputs {
		if len(e.backend.devices) > 1 {
			if device, err = e.backend.Backend.BufferDeviceNum(inner); err != nil {
				return err
			}
		}
		outputs[i] = e.backend.track(e.backend.of(device), inner, &e.outputs[i%len(e.outputs)], device)
	}
	return nil
}
