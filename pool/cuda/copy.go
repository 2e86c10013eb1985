package cuda

import (
	"encoding/binary"
	"unsafe"
)

// Copy queues a copy between two addresses of device, pinned or managed memory, in
// any combination, on one device. Both must stay allocated until it is done.
// [CopyTo] copies arrays, also between devices.
func (s *Stream) Copy(dst, src uintptr, bytes int64) error {
	defer s.spend("copy", bytes)()
	return copyAsync(s, dst, src, bytes)
}

// fillPattern queues the writing of pattern, count times. A pattern of 1, 2 or 4
// bytes costs one pass over the memory, any other one more.
func (s *Stream) fillPattern(dst uintptr, pattern []byte, count int64) error {
	n := int64(len(pattern))
	switch {
	case n == 0 || count == 0:
		return nil
	case n == 1 || n == 2 || n == 4:
		defer s.spend("fill", n*count)()
		return fill(s, dst, pattern, count)
	}
	if err := s.upload(dst, pattern); err != nil {
		return err
	}
	for done := int64(1); done < count; done *= 2 { // the first bytes behind themselves
		if err := s.Copy(dst+uintptr(n*done), dst, n*min(done, count-done)); err != nil {
			return err
		}
	}
	return nil
}

// upload copies src to the device and blocks until src has been read. From memory
// that is not pinned that takes about as long as the copy. From pinned memory it is
// a sync point; there [Stream.Copy] does not block.
func (s *Stream) upload(dst uintptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	done := s.spend("copy from the host", int64(len(src)))
	pinned, err := upload(s, dst, unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)))
	done()
	if err != nil || !pinned {
		return err
	}
	return s.Synchronize()
}

// download copies from the device to dst and blocks until that is done. It is
// a sync point if s has work left.
func (s *Stream) download(dst []byte, src uintptr) error {
	if len(dst) == 0 {
		return nil
	}
	get := func() error {
		done := s.spend("copy to the host", int64(len(dst)))
		err := download(s, unsafe.Pointer(unsafe.SliceData(dst)), src, int64(len(dst)))
		done()
		if err != nil {
			return err
		}
		return s.await()
	}
	if idle, err := s.idle(); err != nil {
		return err
	} else if idle {
		return get()
	}
	return s.dev.wait(&s.dev.onCopy, get)
}

// A HostBuffer is a small piece of pinned memory outside any pool, for single
// numbers and flags.
type HostBuffer struct {
	dev   *Device
	addr  uintptr
	bytes []byte
}

// NewHostBuffer allocates a buffer, which the caller closes.
func (d *Device) NewHostBuffer(bytes int) (*HostBuffer, error) {
	var addr uintptr
	err := d.retry(func() (err error) { addr, err = hostAlloc(d, int64(bytes)); return err })
	if err != nil {
		return nil, err
	}
	return &HostBuffer{d, addr, bytesAt(addr, bytes)}, nil
}

// elementsAt is the memory at an address outside the Go heap, as elements.
func elementsAt[T any](addr uintptr, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(nil), addr)), n)
}

// bytesAt is the memory at an address outside the Go heap.
func bytesAt(addr uintptr, n int) []byte {
	return elementsAt[byte](addr, n)
}

// Addr returns the address, which is the same on the host and every device.
func (b *HostBuffer) Addr() uintptr { return b.addr }

// Bytes returns the memory. The GPU may write to it at any time.
func (b *HostBuffer) Bytes() []byte { return b.bytes }

// Uint32 returns word i.
func (b *HostBuffer) Uint32(i int) uint32 { return binary.NativeEndian.Uint32(b.bytes[4*i:]) }

// Close gives the memory back. No stream may still use it.
func (b *HostBuffer) Close() error { return hostFree(b.dev, b.addr) }

// mover copies for the pool to and from memory that the processor cannot address.
// It uses the stream of the array, or the default stream if that one is closed or of
// another device, which may have no access to the memory.
type mover struct{ dev *Device }

func (m mover) Upload(to uintptr, from []byte, stream uint32) error {
	return m.on(stream, func(s *Stream) error {
		if staged, err := m.dev.stageUpload(s, to, from); staged || err != nil {
			return err
		}
		return s.upload(to, from)
	})
}

func (m mover) Download(to []byte, from uintptr, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.download(to, from) })
}

func (m mover) Copy(to, from uintptr, bytes int64, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.Copy(to, from, bytes) })
}

func (m mover) Fill(to uintptr, pattern []byte, count int64, stream uint32) error {
	return m.on(stream, func(s *Stream) error { return s.fillPattern(to, pattern, count) })
}

// on calls f with the stream of that number. If that one is closed or of another device, on
// calls f with the default stream, behind the work of that one, and waits.
func (m mover) on(stream uint32, f func(*Stream) error) error {
	if s := m.dev.stream(stream); s != nil && !s.closed.Load() && s.dev.index == m.dev.index {
		return f(s)
	}
	null := m.dev.Default()
	if err := null.after(stream); err != nil {
		return err
	}
	if err := f(null); err != nil {
		return err
	}
	return streamSync(null)
}
