package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// With calls f with the address of the array's memory; f queues work on s. That work comes after
// all work that used the array before, on any stream. The memory is not reused before the work
// ends, even if the array is freed or collected at once.
//
// Memory of another device is reached through peer access, which With enables. If the hardware has
// none, or the memory is a [DriverPool]'s, With fails with [array.ErrReach].
// While s is being captured, the graph takes the place of the work: see [Graph.Launch]. Managed
// memory that was used elsewhere moves to the device at once, and not page by page.
func With[T any](a array.Array[T], s *Stream, f func(addr uintptr) error) error {
	return a.Reach(func(m array.Memory) error { return use(m, s, f) })
}

// use is With for memory that is reached.
func use(m array.Memory, s *Stream, f func(addr uintptr) error) error {
	if err := reachable(m, s); err != nil {
		return err
	}
	if m.Space == pressure.Managed && s.graph.Load() == nil {
		s.bring(m)
	}
	return s.inOrder(func() error { return f(m.Addr) }, m)
}

// inOrder calls f, which queues work on s that uses memory. That work comes after all work that
// used the memory before, and work that uses it later comes after that.
func (s *Stream) inOrder(f func() error, memory ...array.Memory) error {
	if err := s.takes(""); err != nil {
		return err
	}
	if g := s.graph.Load(); g != nil {
		for _, m := range memory {
			g.use(m)
		}
		return f()
	}
	waited := make([]uint32, 0, 8) // streams that s comes after
	wait := func(m array.Memory, user uint32) error {
		if user == 0 {
			user = s.nullOf(m).id
		}
		if slices.Contains(waited, user) {
			return nil
		}
		waited = append(waited, user)
		return s.after(user)
	}
	var few [4]uint32
	uses := few[:0]
	for _, m := range memory {
		uses = append(uses, m.Uses())
		s.nullOf(m) // notes that s uses memory of another device
		if err := wait(m, m.LastStream()); err != nil {
			return err
		}
	}
	failed := f()
	// Another goroutine may have used the memory on another stream meanwhile. The next user waits
	// for s alone, so s must come after that stream, too.
	waited = waited[:0]
	for i, m := range memory {
		as := s.id
		if m.LastStream() == 0 && s == s.nullOf(m) {
			as = 0 // to the pool another number is another stream
		}
		before := m.UsedBy(as)
		if m.Uses() == uses[i]+1 {
			continue
		}
		if err := wait(m, before); failed == nil {
			failed = err
		}
	}
	return failed
}

// nullOf returns the stream that has the number 0 for the memory: the default stream of its device.
func (s *Stream) nullOf(m array.Memory) *Stream {
	up, is := m.Upstream().(interface{ device() *Device })
	if !is || up.device() == s.dev {
		return &s.dev.null
	}
	s.dev.abroad.Store(true)
	return &up.device().null
}

// bring makes the driver move managed memory to the device of s, if it was used elsewhere before.
// It is advice: without it the memory moves page by page when it is touched. That is left to the
// driver if several devices are open, which may share the memory (CUDA.jl#2626). It is also left to
// the driver for more than half of the device's memory, because a kernel may need little of it.
func (s *Stream) bring(m array.Memory) {
	if len(openContexts()) > 1 || 2*m.Bytes > s.dev.total {
		return
	}
	if m.MoveTo(s.dev.index) {
		_ = s.Prefetch(m.Addr, m.Bytes, s.dev.index)
	}
}

// after makes later work of s come after the work of the stream given.
func (s *Stream) after(stream uint32) error {
	before := s.dev.stream(stream)
	if before == nil || before == s {
		return nil
	}
	before.marking.RLock()
	defer before.marking.RUnlock()
	e := before.last()
	if e == 0 {
		var err error
		if e, err = before.sharedEvent(); err != nil {
			return err
		}
		if err := eventRecord(before, e); err != nil {
			return err
		}
	}
	return streamWait(s, e)
}

// sharedEvent returns an event that is waited for at once. If several goroutines use it at a time,
// one may move it for another, but only to later.
func (s *Stream) sharedEvent() (handle, error) {
	s.sharedOnce.Do(func() { s.shared, s.sharedErr = eventCreate(s.dev) })
	return s.shared, s.sharedErr
}

// reachable checks that work on s may use the memory, and enables peer access.
func reachable(m array.Memory, s *Stream) error {
	on, isDevice := m.Space.Device()
	if m.Space == pressure.Host {
		return fmt.Errorf("cuda: %w: %v cannot use host memory that is not page-locked: make the array in a pool of pinned or managed memory, or copy it to one of the device", array.ErrReach, s.dev)
	}
	if !isDevice || on == s.dev.index {
		return nil
	}
	ok, err := s.dev.canUse(on)
	if _, is := m.Upstream().(*driverMemory); is {
		ok = false
	}
	if err == nil && !ok {
		err = fmt.Errorf("cuda: %w: %v on device %d cannot be used on device %d, which has no peer access to it: copy it with CopyTo to an array of device %[4]d, or use it on device %[3]d",
			array.ErrReach, pressure.Bytes(m.Bytes), on, s.dev.index)
	}
	return err
}

// CopyTo queues on s a copy of one array to another of the same length. The two may lie on one
// device, on two, or in pinned or managed memory. Between devices the copy is direct if the
// hardware can do that, else through the host. CopyTo does not block. It fails if the arrays
// overlap: [array.Array.CopyFrom] copies those.
func CopyTo[T any](to, from array.Array[T], s *Stream) error {
	if err := sameLength(from.Len(), to.Len()); err != nil {
		return err
	}
	return from.Reach(func(src array.Memory) error {
		return to.Reach(func(dst array.Memory) error {
			copies := func() error { return s.Copy(dst.Addr, src.Addr, src.Bytes) }
			to, onDevice := dst.Space.Device()
			from, fromDevice := src.Space.Device()
			if onDevice && fromDevice && (to != from || to != s.dev.index) { // needs no peer access
				copies = func() error { return s.copyPeer(dst.Addr, to, src.Addr, from, src.Bytes) }
			} else if err := errors.Join(reachable(src, s), reachable(dst, s)); err != nil {
				return err
			}
			return s.inOrder(copies, src, dst)
		})
	})
}

// Fill queues on s the writing of v to each element, as [array.Array.Fill] does without a stream.
// While s is being captured, it fails for values that do not repeat a pattern of 1, 2 or 4 bytes.
func Fill[T any](a array.Array[T], v T, s *Stream) error {
	size := int(unsafe.Sizeof(v))
	if size == 0 {
		return nil
	}
	return With(a, s, func(addr uintptr) error {
		return s.fillPattern(addr, unsafe.Slice((*byte)(unsafe.Pointer(&v)), size), int64(a.Len()))
	})
}

func sameLength(from, to int) error {
	if from != to {
		return fmt.Errorf("cuda: copy of %d elements to %d", from, to)
	}
	return nil
}
