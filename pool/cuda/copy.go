package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/eagergc/eagergc/pool/array"
)

// Copy queues a copy between two addresses of device, pinned or managed memory, in any combination,
// on one device. Both must stay allocated until it is done, and must not overlap. [CopyTo] copies
// arrays, also between devices.
func (s *Stream) Copy(dst, src uintptr, bytes int64) error {
	return s.copyApart(dst, src, bytes, func() error { return copyAsync(s, dst, src, bytes) })
}

// copyPeer is Copy from memory of one device to that of another.
func (s *Stream) copyPeer(dst uintptr, to int, src uintptr, from int, bytes int64) error {
	return s.copyApart(dst, src, bytes, func() error { return copyPeer(s, dst, to, src, from, bytes) })
}

func (s *Stream) copyApart(dst, src uintptr, bytes int64, copies func() error) error {
	if err := s.takes(""); err != nil || bytes == 0 || dst == src {
		return err
	}
	if overlap(dst, src, bytes) {
		return fmt.Errorf("cuda: copy of %d bytes from %#x to %#x, which overlap", bytes, src, dst)
	}
	return copies()
}

func overlap(a, b uintptr, bytes int64) bool { return max(a, b)-min(a, b) < uintptr(bytes) }

// fillPattern queues the writing of pattern, count times. A pattern of 1, 2 or 4 bytes costs one
// pass over the memory, any other one more.
func (s *Stream) fillPattern(dst uintptr, pattern []byte, count int64) error {
	if len(pattern) == 0 || count == 0 {
		return nil
	}
	for _, n := range []int{1, 2, 4} {
		if len(pattern)%n == 0 && bytes.Equal(pattern[n:], pattern[:len(pattern)-n]) {
			if err := s.takes(""); err != nil {
				return err
			}
			return fill(s, dst, pattern[:n], count*int64(len(pattern)/n))
		}
	}
	if err := s.takes("a pattern that is not of 1, 2 or 4 bytes"); err != nil {
		return err
	}
	if err := s.upload(dst, pattern); err != nil {
		return err
	}
	n := int64(len(pattern))
	for done := int64(1); done < count; done *= 2 { // the first bytes behind themselves
		if err := s.Copy(dst+uintptr(n*done), dst, n*min(done, count-done)); err != nil {
			return err
		}
	}
	return nil
}

// upload copies src to the device and blocks until src has been read. From memory that is not
// pinned that takes about as long as the copy. From pinned memory it is a sync point; there
// [Stream.Copy] does not block.
func (s *Stream) upload(dst uintptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	pinned, err := upload(s, dst, unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)))
	if err != nil || !pinned {
		return err
	}
	return s.Synchronize()
}

// download copies from the device to dst and blocks until that is done. It is a sync point if s has
// work left.
func (s *Stream) download(dst []byte, src uintptr) error {
	if len(dst) == 0 {
		return nil
	}
	get := func() error {
		if err := download(s, unsafe.Pointer(unsafe.SliceData(dst)), src, int64(len(dst))); err != nil {
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

// mover copies for the pool to and from memory that the processor cannot address.
type mover struct{ dev *Device }

// Order implements [array.Orderer]. It takes the stream that used the last of the memories last. If
// that one is closed or of another device, which may have no access to the memory, it takes the
// default stream.
func (m mover) Order(f func(stream uint32) error, memories ...array.Memory) error {
	s := m.dev.stream(memories[len(memories)-1].LastStream())
	if s == nil || s.closed.Load() || s.dev.index != m.dev.index {
		s = m.dev.Default()
	}
	if err := s.takes("a method of an array"); err != nil {
		return err
	}
	for _, x := range memories {
		if x.Tainted() {
			return errors.New("cuda: a method of an array that a graph uses, which is being captured: see Fill and CopyTo")
		}
	}
	return s.inOrder(func() error { return f(s.id) }, memories...)
}

func (m mover) Upload(to uintptr, from []byte, stream uint32) error {
	s := m.dev.stream(stream)
	if staged, err := m.dev.stageUpload(s, to, from); staged || err != nil {
		return err
	}
	return s.upload(to, from)
}

func (m mover) Download(to []byte, from uintptr, stream uint32) error {
	return m.dev.stream(stream).download(to, from)
}

func (m mover) Copy(to, from uintptr, bytes int64, stream uint32) error {
	s := m.dev.stream(stream)
	if to == from || !overlap(to, from, bytes) {
		return s.Copy(to, from, bytes)
	}
	through := make([]byte, bytes) // the driver copies only what does not overlap
	if err := s.download(through, from); err != nil {
		return err
	}
	return s.upload(to, through)
}

func (m mover) Fill(to uintptr, pattern []byte, count int64, stream uint32) error {
	return m.dev.stream(stream).fillPattern(to, pattern, count)
}
