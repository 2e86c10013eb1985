package gomlx

import (
	"fmt"
	"runtime"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/eagergc/eagergc/gc"
)

// A buffer is what GoMLX holds: the owner of the other backend's buffer.
type buffer struct {
	held   *held
	handle gc.Handle
	shape  *shapes.Shape
	device backends.DeviceNum
}

// What is held of the other backend is given back once the buffer is unreachable.
type held struct {
	memory *memory
	inner  backends.Buffer
	bytes  int64
	taken  bool // somebody else gives it back: the program, or an execution that was given it
}

// track counts a buffer that the other backend has made.
func (b *Backend) track(m *memory, inner backends.Buffer, shape *shapes.Shape, device backends.DeviceNum) *buffer {
	h := &held{memory: m, inner: inner, bytes: int64(shape.Memory())}
	own := &buffer{held: h, shape: shape, device: device}
	m.live.Add(h.bytes)
	own.handle = gc.Own(m.collector, own, h.bytes, (*held).release, h)
	return own
}

// release is called once. The other backend's buffers die with it.
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

// take says that somebody else gives the buffer's memory back.
func (o *buffer) take() {
	o.held.taken = true
	o.handle.Release()
}

// own returns the buffer that x is.
func (b *Backend) own(x backends.Buffer) (*buffer, error) {
	own, ok := x.(*buffer)
	if !ok || own.held.memory.backend != b {
		return nil, fmt.Errorf("gomlx: the buffer, a %T, is not one of this backend", x)
	}
	return own, nil
}

// with calls f with the buffer that x is, which it keeps alive.
func with[T any](b *Backend, x backends.Buffer, f func(own *buffer) (T, error)) (result T, err error) {
	own, err := b.own(x)
	if err != nil {
		return result, err
	}
	defer runtime.KeepAlive(own)
	return f(own)
}
