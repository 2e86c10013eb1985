package cuda

import (
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
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

// Register returns an array that is the slice itself, with locked pages. The device copies to and
// from it at full speed and beside the program, and kernels use it in place. The program uses the
// slice within [array.Array.Do], which waits for queued work. It counts as pinned memory of the size
// of its pages, with its limits.
//
// The pages are unlocked once the array is freed or found dead, and its device has done its work. To
// lock pages takes about as long as to write the memory once, so it is for memory that is copied
// again and again. T must not contain pointers. Register fails for an empty slice, and if the pages
// are locked already. It waits for the device if slices that were freed are still in use.
func Register[T any](d *Device, s []T) (a array.Array[T], err error) {
	if len(s) == 0 {
		return a, errors.New("cuda: register of an empty slice")
	}
	r, err := d.registered()
	if err != nil {
		return a, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pool.Stats().Waiting > 0 {
		if err := r.pool.Synchronize(); err != nil {
			return a, err
		}
	}
	r.next = uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	if err := d.retry(func() error { return hostRegister(d, r.next, int64(len(s))*int64(unsafe.Sizeof(s[0]))) }); err != nil {
		return a, err
	}
	pin := new(runtime.Pinner)
	pin.Pin(unsafe.SliceData(s))
	r.pins.Store(r.next, pin)
	if a, err = array.New[T](r.pool, len(s)); err != nil {
		err = errors.Join(err, r.release(r.next, nil))
	}
	return a, err
}

// registered is an upstream whose memory are the slices that were given to Register.
type registered struct {
	upstream
	pool *pool.Pool
	pins sync.Map // of *runtime.Pinner, by address

	mu   sync.Mutex // held by Register
	next uintptr    // the slice that is registered
}

// registered returns the upstream for Register, which the first call makes.
func (d *Device) registered() (*registered, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slices != nil {
		return d.slices, nil
	}
	r := &registered{upstream: upstream{order: order{d}, kind: "pinned", info: pressure.HostMemory}}
	r.allocate = func(int64, *Stream) (uintptr, error) { return r.next, nil }
	r.upstream.release = r.release
	var err error
	if r.pool, err = pool.New(pool.Config{Upstream: r, Space: pressure.Pinned, Direct: true}); err == nil {
		d.slices = r
	}
	return r, err
}

// release waits for the device and unlocks the pages. Closing the device has already unlocked them.
func (r *registered) release(addr uintptr, _ *Stream) error {
	if err := r.dev.whileOpen(func() error { return errors.Join(r.dev.settleLocked(), hostUnregister(r.dev, addr)) }); err != nil {
		return err
	}
	pin, _ := r.pins.LoadAndDelete(addr)
	pin.(*runtime.Pinner).Unpin()
	return nil
}
