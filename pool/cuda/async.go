package cuda

// A DriverPool is a memory pool of the driver. Allocation and free are work of a
// stream, done in its order. The driver keeps freed memory up to a threshold. It
// is safe for concurrent use.
type DriverPool struct {
	dev *Device
	h   handle
}

// NewDriverPool makes a pool on d. What it holds above threshold bytes and has
// free goes back to the device when a stream is synchronised. With a negative
// threshold the pool keeps everything until [DriverPool.Trim].
func (d *Device) NewDriverPool(threshold int64) (*DriverPool, error) {
	h, err := poolCreate(d, uint64(threshold))
	if err != nil {
		return nil, err
	}
	return &DriverPool{d, h}, nil
}

// Close gives the pool back. Memory still in use stays valid until it is freed.
func (p *DriverPool) Close() error { return poolDestroy(p.dev, p.h) }

// Alloc returns memory that work queued on s from now on may use; other streams
// must wait for an event recorded on s after this call.
func (p *DriverPool) Alloc(bytes int64, s *Stream) (addr uintptr, err error) {
	if s == nil || s.closed.Load() { // its successor is the default stream
		s = p.dev.Default()
	}
	return poolAlloc(p.dev, p.h, s.h, bytes)
}

// Free gives memory back once the work queued on s so far has ended. If s has
// been closed, the device's default stream frees it after the last work of s.
func (p *DriverPool) Free(addr uintptr, s *Stream) error {
	null := p.dev.Default()
	if s == nil {
		return poolFree(p.dev, null.h, addr)
	}
	if !s.closed.Load() {
		return poolFree(p.dev, s.h, addr)
	}
	if err := streamWait(null, s.tail); err != nil {
		return err
	}
	return poolFree(p.dev, null.h, addr)
}

// SetThreshold changes the threshold of [Device.NewDriverPool].
func (p *DriverPool) SetThreshold(bytes int64) error { return poolThreshold(p.dev, p.h, uint64(bytes)) }

// Trim waits for the device, and gives free memory back to it until at most
// keep bytes are reserved, or none is free. Without the wait the driver would
// keep memory whose free it has queued, even if the stream has passed it.
func (p *DriverPool) Trim(keep int64) error {
	if err := syncContext(p.dev); err != nil {
		return err
	}
	return poolTrim(p.dev, p.h, keep)
}

// Usage returns the bytes that the pool holds of the device, and the bytes of
// them that are handed out, as the driver counts.
func (p *DriverPool) Usage() (reserved, used int64, err error) { return poolUsage(p.dev, p.h) }
