package cuda

import "github.com/eagergc/eagergc/pool"

// A DriverPool is a memory pool of the driver. Allocation and free are work of a stream, done in
// its order. The driver keeps freed memory up to a threshold. It is safe for concurrent use.
type DriverPool struct {
	dev      *Device
	h        handle
	borrowed bool // it is the device's
}

// NewDriverPool makes a pool on d. Free memory above threshold bytes goes back to the device when a
// stream is synchronised. With a negative threshold the pool keeps everything until
// [DriverPool.Trim]. The soft limit of a [pool.Pool] over it replaces the threshold.
//
// Work of other devices cannot use the memory in place; [CopyTo] brings it there. Some drivers lose
// data of copies into a pool that another device may use (CUDA.jl#3112).
func (d *Device) NewDriverPool(threshold int64) (*DriverPool, error) {
	h, err := poolCreate(d, uint64(threshold))
	return &DriverPool{dev: d, h: h}, err
}

// CurrentDriverPool returns the pool that the driver uses on d where a program names none. Other
// libraries of the process allocate from it, too, so its Close does not destroy it.
func (d *Device) CurrentDriverPool() (*DriverPool, error) {
	h, err := poolCurrent(d)
	return &DriverPool{dev: d, h: h, borrowed: true}, err
}

// Close gives the pool back. Memory still in use stays valid until it is freed.
func (p *DriverPool) Close() error {
	if p.borrowed {
		return nil
	}
	return poolDestroy(p.dev, p.h)
}

// alloc returns memory that work queued on s from now on may use. A nil s is the default stream.
func (p *DriverPool) alloc(bytes int64, s *Stream) (addr uintptr, err error) {
	if s == nil || s.closed.Load() { // its successor is the default stream
		s = p.dev.Default()
	}
	if err := s.takes("an allocation of the driver's pool"); err != nil {
		return 0, err
	}
	return poolAlloc(s.dev, p.h, s.h, bytes) // a default stream is that of the context
}

// free gives memory back once the work queued on s so far has ended. If s has been closed, or is
// being captured, the device's default stream frees it after the last work of s.
func (p *DriverPool) free(addr uintptr, s *Stream) error {
	null := p.dev.Default()
	if s == nil {
		return poolFree(p.dev, null.h, addr)
	}
	s.marking.RLock()
	defer s.marking.RUnlock()
	last := s.last()
	if last == 0 {
		return poolFree(s.dev, s.h, addr)
	}
	if err := streamWait(null, last); err != nil {
		return err
	}
	return poolFree(p.dev, null.h, addr)
}

// Trim waits for the device, and gives free memory back to it until at most keep bytes are
// reserved, or none is free. Without the wait the driver would keep memory whose free it has
// queued, even if the stream has passed it.
func (p *DriverPool) Trim(keep int64) error {
	if err := p.dev.settle(); err != nil {
		return err
	}
	return poolTrim(p.dev, p.h, keep)
}

// Usage returns the driver's counts: the bytes that the pool has taken from the device, the bytes
// that are handed out, and the peaks of both.
func (p *DriverPool) Usage() (pool.Usage, error) { return poolUsage(p.dev, p.h) }

// driverMemory is the memory of a [DriverPool] for a [pool.Pool] that caches nothing itself. It is
// a [pool.Cacher].
type driverMemory struct {
	deviceMemory
	*DriverPool
}

// Upstream returns the pool's memory for a [pool.Pool] with the option Direct: allocation and
// release are work of the stream.
func (p *DriverPool) Upstream() pool.Upstream {
	m := &driverMemory{DriverPool: p}
	m.order, m.kind, m.info = order{p.dev}, "stream-ordered", p.dev.info
	m.allocate, m.release = p.alloc, p.free
	m.mover = mover{p.dev}
	return m
}

// Keep is that of [pool.Cacher].
func (p *DriverPool) Keep(bytes int64) error { return poolThreshold(p.dev, p.h, uint64(bytes)) }
