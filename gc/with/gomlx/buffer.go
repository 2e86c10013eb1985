package gomlx

import (
	"fmt"
	"runtime"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/eagergc/eagergc/gc"
)

// A buffer is GoMLX's buffer, and the owner of the other backend's.
type buffer struct {
	held   *held
	handle gc.Handle
	shape  *shapes.Shape
	device backends.DeviceNum
}

// A held is the other backend's buffer. It is freed once its owner is unreachable.
type held struct {
	memory *memory
	inner  backends.Buffer
	bytes  int64
	taken  bool // the program, or an execution that took it, frees it
}

// track counts a buffer of the other backend.
func (b *Backend) track(m *memory, inner backends.Buffer, shape *shapes.Shape, device backends.DeviceNum) *buffer {
	h := &held{memory: m, inner: inner, bytes: int64(shape.Memory())}
	own := &buffer{held: h, shape: shape, device: device}
	m.live.Add(h.bytes)
	own.handle = gc.Own(m.collector, own, h.bytes, (*held).release, h)
	return own
}

// release is called once. It frees nothing after the other backend is finalized, which frees all
// buffers.
func (h *held) release() {
	h.memory.live.Add(-h.bytes)
	if h.taken {
		return
	}
	of := h.memory.backend
	of.end.mu.RLock()
	defer of.end.mu.RUnlock()
	if !of.end.come {
		_ = of.Backend.BufferFinalize(h.inner)
	}
}

// take notes that other code frees the buffer's memory.
func (o *buffer) take() {
	o.held.taken = true
	o.handle.Release()
}

// own returns x as a buffer of this backend.
func (b *Backend) own(x backends.Buffer) (*buffer, error) {
	own, ok := x.(*buffer)
	if !ok || own.held.memory.backend != b {
		return nil, fmt.Errorf("gomlx: the buffer, a %T, is not one of this backend", x)
	}
	return own, nil
}

// with calls f with x as a buffer of this backend, and keeps it alive during the call.
func with[T any](b *Backend, x backends.Buffer, f func(own *buffer) (T, error)) (result T, err error) {
	own, err := b.own(x)
	if err != nil {
		return result, err
	}
	defer runtime.KeepAlive(own)
	return f(own)
}
