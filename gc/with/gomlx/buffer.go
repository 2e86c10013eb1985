package gomlx

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/eagergc/eagergc/gc"
)

// A buffer is what GoMLX holds: the owner of the other backend's buffer.
type buffer struct {
	held   *held
	handle gc.Handle
	shape  shapes.Shape
	device backends.DeviceNum
}

// What is held of the other backend is given back once the buffer is unreachable.
type held struct {
	backend *Backend
	memory  *memory
	inner   backends.Buffer
	bytes   int64
	donated bool // an execution has taken it
	err     error
}

// track counts a buffer that the other backend has made.
func (b *Backend) track(m *memory, inner backends.Buffer, shape shapes.Shape, device backends.DeviceNum) *buffer {
	h := &held{backend: b, memory: m, inner: inner, bytes: int64(shape.Memory())}
	own := &buffer{held: h, shape: shape, device: device}
	m.live.Add(h.bytes)
	own.handle = gc.Own(m.collector, own, h.bytes, (*held).release, h)
	return own
}

// release is called once. The other backend's buffers die with it.
func (h *held) release() {
	h.memory.live.Add(-h.bytes)
	if !h.donated && !h.backend.IsFinalized() {
		h.err = h.backend.Backend.BufferFinalize(h.inner)
	}
}

// donate is called when an execution has taken the buffer's memory.
func (o *buffer) donate() {
	o.held.donated = true
	o.handle.Release()
}

// own returns the buffer that x is.
func (b *Backend) own(x backends.Buffer) (*buffer, error) {
	own, ok := x.(*buffer)
	if !ok || own.held.backend != b {
		return nil, fmt.Errorf("gomlx: the buffer, a %T, is not one of this backend", x)
	}
	return own, nil
}
