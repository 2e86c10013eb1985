package cuda

import (
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
)

// StageThrough makes uploads of arrays not wait for the device. CopyIn then copies into a block of
// the pinned pool, queues the rest of the way on the stream, and returns. The block goes back to
// the pinned pool when the copy has ended. An upload blocks as before if the pinned pool has no
// room or the slice is larger than 64 MiB. Nil undoes it. Stats of the pinned pool count the bytes
// on their way. [Default] does it.
func (d *Device) StageThrough(pinned *pool.Pool) { d.staging.Store(pinned) }

const mostStaged = 64 << 20 // bytes; the copy by the processor is then most of the time

// stageUpload queues an upload through the staging pool, and reports whether it did.
func (d *Device) stageUpload(s *Stream, to uintptr, from []byte) (bool, error) {
	p := d.staging.Load()
	if p == nil || len(from) == 0 || len(from) > mostStaged {
		return false, nil
	}
	b, err := p.Alloc(int64(len(from)), 0)
	if errors.Is(err, pool.ErrOutOfMemory) {
		return false, nil // the driver's own way is slower, but there
	}
	if err != nil {
		return false, err
	}
	defer p.Free(b) // used again once s has passed the copy
	copy(p.Memory(b), from)
	p.Use(b, s.ID())
	return true, s.Copy(to, b.Addr, int64(len(from)))
}

// Registered is a slice of the program's own with locked pages. The device copies to and from it at
// full speed and beside the program. Kernels use it in place, as an argument of [Launch]. Make one
// with [Register].
type Registered[T any] struct {
	s []T
	r *registration
}

// A registration undoes a Register.
type registration struct {
	dev  *Device
	addr uintptr
	pin  runtime.Pinner

	mu     sync.Mutex
	graphs int  // that use the pages
	closed bool // once no graph does, the pages are unlocked
	undone bool
}

// Register locks the pages of a slice for all devices. They stay locked until Close. Without Close
// they are unlocked once nothing refers to the result any more and its device has done its work. To
// lock pages takes about as long as to write the memory once, so it is for memory that is copied
// again and again. T must not contain pointers. Register fails for an empty slice, and if the pages
// are locked already.
func Register[T any](d *Device, s []T) (*Registered[T], error) {
	if len(s) == 0 {
		return nil, errors.New("cuda: register of an empty slice")
	}
	r := &registration{dev: d, addr: uintptr(unsafe.Pointer(unsafe.SliceData(s)))}
	if err := d.retry(func() error { return hostRegister(d, r.addr, int64(len(s))*int64(unsafe.Sizeof(s[0]))) }); err != nil {
		return nil, err
	}
	r.pin.Pin(unsafe.SliceData(s))
	x := &Registered[T]{s, r}
	runtime.AddCleanup(x, func(r *registration) { go r.close() }, r) // which waits
	return x, nil
}

// close waits for the device and unlocks the pages, unless a graph uses them.
func (r *registration) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.graphs > 0 || r.undone {
		return nil
	}
	r.undone = true
	defer r.pin.Unpin()
	return r.dev.whileOpen(func() error { // closing the device has already unlocked the pages
		return errors.Join(r.dev.settleLocked(), hostUnregister(r.dev, r.addr))
	})
}

// usedOn has the graph that s captures, if it does, keep the pages locked.
func (r *registration) usedOn(s *Stream) {
	g := s.graph.Load()
	if g == nil {
		return
	}
	r.mu.Lock()
	r.graphs++
	r.mu.Unlock()
	g.keep(func() {
		r.mu.Lock()
		r.graphs--
		last := r.closed
		r.mu.Unlock()
		if last {
			_ = r.close()
		}
	})
}

// address is that for [Launch]: a kernel on s reads and writes the slice itself, over the bus.
func (x *Registered[T]) address(s *Stream) uintptr {
	x.r.usedOn(s)
	return x.r.addr
}

// Slice returns the elements. Copies that are queued may still use them.
func (x *Registered[T]) Slice() []T { return x.s }

// Upload queues on s a copy to an array of the same length, and does not wait.
func (x *Registered[T]) Upload(to array.Array[T], s *Stream) error {
	return x.copy(to, s, func(there uintptr, bytes int64) error { return s.Copy(there, x.r.addr, bytes) })
}

// Download queues on s a copy of an array of the same length, and does not wait.
func (x *Registered[T]) Download(from array.Array[T], s *Stream) error {
	return x.copy(from, s, func(there uintptr, bytes int64) error { return s.Copy(x.r.addr, there, bytes) })
}

func (x *Registered[T]) copy(a array.Array[T], s *Stream, do func(there uintptr, bytes int64) error) error {
	defer runtime.KeepAlive(x)
	if err := sameLength(a.Len(), len(x.s)); err != nil {
		return err
	}
	return With(a, s, func(addr uintptr) error {
		x.r.usedOn(s)
		return do(addr, a.Bytes())
	})
}

// Close waits for the device, whose copies may still use the pages, and unlocks them. While a graph
// uses them they stay locked until it is closed. To close twice is harmless.
func (x *Registered[T]) Close() error { return x.r.close() }
