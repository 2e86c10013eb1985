package cuda

import (
	"fmt"

	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// With calls f with the address of the array's memory; f queues work on s. That
// work comes after all work that used the array before, on any stream. The memory
// is not reused before the work ends, even if the array is freed or collected at
// once.
//
// Memory of another device is reached through peer access, which With enables. If
// the hardware has none, or the memory is a [DriverPool]'s without that user, With fails
// with [array.ErrReach]. While s captures a graph,
// the graph keeps the array's memory until it is closed, and the array is tainted:
// since nobody knows when the graph runs, later uses first wait for the whole device. Managed memory that was used elsewhere moves to the
// device at once, and not page by page.
func With[T any](a array.Array[T], s *Stream, f func(addr uintptr) error) error {
	return a.Reach(func(m array.Memory) error { return use(m, s, f) })
}

// use is With for memory that is reached.
func use(m array.Memory, s *Stream, f func(addr uintptr) error) error {
	if err := reachable(m, s); err != nil {
		return err
	}
	capturing, err := s.capturing()
	switch {
	case err != nil:
		return err
	case capturing:
		m.Taint()
		s.keep(m.Keep())
		return f(m.Addr)
	case m.Tainted():
		if err := s.dev.Synchronize(); err != nil {
			return err
		}
	}
	if m.Space == pressure.Managed {
		s.bring(m)
	}
	last := m.LastStream()
	if err := s.afterUse(m, last); err != nil {
		return err
	}
	failed := f(m.Addr)
	// Somebody may have used the array on a third stream meanwhile. Whoever
	// comes next waits for s alone, so s must come after that one, too.
	if before := m.UsedBy(s.id); before != last {
		err = s.afterUse(m, before)
	}
	if failed != nil {
		return failed
	}
	return err
}

// bring has the driver move the part of managed memory that is to be used to the device
// of s, if it was used elsewhere before. It is advice: where the driver cannot, the
// memory moves page by page when it is touched. That is left to the driver where
// several devices are open, which may share the memory (CUDA.jl#2626), and for more than
// half of what the device has, of which a kernel may need little.
func (s *Stream) bring(m array.Memory) {
	if several() || 2*m.Bytes > s.dev.total {
		return
	}
	if m.MoveTo(s.dev.index) {
		_ = s.Prefetch(m.Addr, m.Bytes, s.dev.index)
	}
}

// afterUse makes later work of s come after the work of a stream that used the memory:
// number 0 is the default stream of the device that the memory is of.
func (s *Stream) afterUse(m array.Memory, stream uint32) error {
	if up, is := m.Upstream().(interface{ device() *Device }); is && stream == 0 {
		stream = up.device().null.id
	}
	return s.after(stream)
}

// after makes later work of s come after the work of the stream given.
func (s *Stream) after(stream uint32) error {
	if stream == s.id || stream == 0 && s == &s.dev.null {
		return nil
	}
	before := s.dev.stream(stream)
	switch {
	case before == nil || before == s:
		return nil
	case before.closed.Load():
		return streamWait(s, before.tail)
	}
	e, err := before.sharedEvent()
	if err != nil {
		return err
	}
	if err := eventRecord(before, e); err != nil {
		return err
	}
	return streamWait(s, e)
}

// sharedEvent returns an event that is waited for at once. If several
// goroutines use it at a time, one may move it for another, but only to later.
func (s *Stream) sharedEvent() (handle, error) {
	s.sharedOnce.Do(func() { s.shared, s.sharedErr = eventCreate(s.dev, false) })
	return s.shared, s.sharedErr
}

// reachable checks that work on s may use the memory, and enables peer access.
func reachable(m array.Memory, s *Stream) error {
	on, isDevice := m.Space.Device()
	if m.Space == pressure.Host && !s.dev.pageable {
		return fmt.Errorf("cuda: %w: %v cannot use host memory that is not page-locked: make the array in a pool of pinned or managed memory, or copy it to one of the device", array.ErrReach, s.dev)
	}
	if !isDevice || on == s.dev.index {
		return nil
	}
	ok, err := s.dev.canUse(on)
	if driver, is := m.Upstream().(*driverMemory); is {
		ok = ok && driver.users[s.dev.index]
	}
	if err == nil && !ok {
		err = fmt.Errorf("cuda: %w: %v on device %d cannot be used on device %d, which has no peer access to it: copy it with CopyTo to an array of device %[4]d, or use it on device %[3]d",
			array.ErrReach, pressure.Bytes(m.Bytes), on, s.dev.index)
	}
	return err
}

// CopyTo queues on s a copy of one array to another of the same length. The two
// may lie on one device, on two, or in pinned or managed memory. Between devices
// the copy is direct if the hardware can do that, else through the host. CopyTo
// does not block.
func CopyTo[T any](to, from array.Array[T], s *Stream) error {
	if err := sameLength(from.Len(), to.Len()); err != nil {
		return err
	}
	// Not With: a copy between devices needs no peer access.
	return from.Reach(func(src array.Memory) error {
		return to.Reach(func(dst array.Memory) error {
			for _, m := range []array.Memory{src, dst} {
				if err := s.afterUse(m, m.LastStream()); err != nil {
					return err
				}
			}
			err := s.copyAnywhere(dst, src)
			for _, m := range []array.Memory{src, dst} {
				if e := s.afterUse(m, m.UsedBy(s.id)); err == nil {
					err = e
				}
			}
			return err
		})
	})
}

func sameLength(from, to int) error {
	if from != to {
		return fmt.Errorf("cuda: copy of %d elements to %d", from, to)
	}
	return nil
}

func (s *Stream) copyAnywhere(dst, src array.Memory) error {
	to, toDevice := dst.Space.Device()
	from, fromDevice := src.Space.Device()
	if toDevice && fromDevice && to != from {
		defer s.spend("copy between devices", src.Bytes)()
		return copyPeer(s, dst.Addr, to, src.Addr, from, src.Bytes)
	}
	return s.Copy(dst.Addr, src.Addr, src.Bytes)
}
