package cuda

import "errors"

// deviceChunks is the [chunkDriver] of a device.
type deviceChunks struct{ dev *Device }

func (c deviceChunks) reserve(bytes int64) (uintptr, error) { return addressReserve(c.dev, bytes) }

func (c deviceChunks) free(addr uintptr, bytes int64) error { return addressFree(c.dev, addr, bytes) }

func (c deviceChunks) create(bytes int64, memory []chunk) error {
	return chunksCreate(c.dev, bytes, memory)
}

func (c deviceChunks) release(memory []chunk) error { return chunksRelease(c.dev, memory) }

func (c deviceChunks) mapTo(addr uintptr, bytes int64, memory []chunk) error {
	users := []int32{int32(c.dev.index)}
	for n := range openDevices {
		if can, err := c.usedBy(n); can && err == nil {
			users = append(users, int32(n))
		}
	}
	return mapChunks(c.dev, addr, bytes, memory, users)
}

func (c deviceChunks) unmap(addr uintptr, bytes int64) error { return unmapChunks(c.dev, addr, bytes) }

func (c deviceChunks) access(addr uintptr, bytes int64, n int) error {
	if can, err := c.usedBy(n); !can || err != nil {
		return err
	}
	return mapAccess(c.dev, addr, bytes, []int32{int32(n)})
}

// usedBy reports whether another device can use the memory of this one.
func (c deviceChunks) usedBy(n int) (bool, error) {
	if n == c.dev.index {
		return false, nil
	}
	return canPeer(n, c.dev.index)
}

func (c deviceChunks) total() (int64, error) {
	_, total, err := memInfo(c.dev)
	return total, err
}

func (c deviceChunks) after(stream, before uint32) error {
	if s := c.dev.stream(stream); s != nil {
		return s.after(before)
	}
	end, err := c.end(before) // a stream that nobody knows waits for nothing
	if err != nil {
		return err
	}
	return errors.Join(end.wait(), end.Close())
}

func (c deviceChunks) capturing(stream uint32) (bool, error) {
	if s := c.dev.stream(stream); s != nil && !s.closed.Load() {
		return s.capturing()
	}
	return false, nil
}

func (c deviceChunks) end(stream uint32) (fence, error) {
	s := c.dev.stream(stream)
	if s == nil {
		return passed{}, nil
	}
	e, err := s.dev.newEvent(false) // an event records streams of its own device only
	if err != nil {
		return nil, err
	}
	if err := s.recordEnd(e); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (passed) wait() error { return nil }

// wait blocks until the work before e has ended. It is no sync point: the pool
// waits while it makes room.
func (e *event) wait() error {
	if e.dev.ended.Load() {
		return nil
	}
	return eventSync(e.dev, e.h)
}

// openDevices yields the numbers of the devices that were opened.
func openDevices(yield func(int) bool) {
	contexts.Range(func(key, _ any) bool { return yield(key.(int)) })
}
