package cuda

import "fmt"

// VirtualMemory is device memory that the pool can give back in parts. Each large
// segment is a range of addresses with chunks of memory behind it, which come and
// go one by one, as in PyTorch's expandable segments. It is a [pool.Divider]: a
// pool over it can fill its limit where a pool over [Device.Memory] is left with
// fragments, in about the same time (results/2026-11-21-cuda-virtual).
type VirtualMemory struct {
	DeviceMemory
	granule int64 // sizes of chunks are multiples of it
	least   int64 // bytes of a chunk
	maps    mappings
}

// Chunks are large and few, because each costs a call of the driver. On one machine
// with an H200, to map a chunk and give it back took about 1 ms for 2 MiB as for 8
// MiB, and 0.2 ms for 64 MiB; on another machine 6 and 70 us. A segment smaller than
// two chunks comes and goes as a whole, which takes 0.1 ms.
const (
	leastChunk = 32 << 20
	mostChunks = 32 // of a segment
)

// Virtual returns the device's memory, to be given back in parts. It fails if the
// device cannot map memory. Devices that were opened before can use the memory if
// they have peer access. Devices that are opened later can only copy it.
func (d *Device) Virtual() (*VirtualMemory, error) {
	granule, err := mapGranule(d)
	if err != nil {
		return nil, err
	}
	v := &VirtualMemory{DeviceMemory: *d.Memory(), granule: granule, least: roundUp(leastChunk, granule)}
	v.kind = "virtual device"
	return v, nil
}

// Allocate is that of [pool.Upstream].
func (v *VirtualMemory) Allocate(bytes int64, stream uint32) (uintptr, error) {
	if bytes < 2*v.least {
		return v.DeviceMemory.Allocate(bytes, stream)
	}
	m := &mapping{bytes: bytes, left: bytes, chunk: max(v.least, roundUp(bytes/mostChunks, v.granule))}
	var err error
	if m.base, err = mapChunks(v.dev, roundUp(bytes, v.granule), m.chunk, v.dev.peersOpen()); err != nil {
		return 0, err
	}
	v.maps.add(m)
	return m.base, nil
}

// Part is that of [pool.Divider]: whole chunks, of which the last of a segment
// may be shorter.
func (v *VirtualMemory) Part(addr uintptr, bytes int64) (part uintptr, size int64) {
	if m := v.maps.find(addr); m != nil {
		return m.part(addr, bytes)
	}
	return 0, 0
}

// Release gives back what Allocate or Part returned, or any whole chunks. It
// waits for the device first, as giving back memory of [Device.Memory] does.
func (v *VirtualMemory) Release(addr uintptr, bytes int64, stream uint32) error {
	m := v.maps.find(addr)
	if m == nil {
		return v.DeviceMemory.Release(addr, bytes, stream)
	}
	if part, size := m.part(addr, bytes); part != addr || size != bytes {
		return fmt.Errorf("cuda: %d bytes at %#x are not whole chunks of virtual memory", bytes, addr)
	}
	if err := unmapChunks(v.dev, addr, roundUp(bytes, v.granule), m.chunk); err != nil {
		return err
	}
	if v.maps.forget(m, bytes) {
		// The memory is back already. Addresses are plenty: if they are lost, no more is.
		_ = unmapAddresses(v.dev, m.base, roundUp(m.bytes, v.granule))
	}
	return nil
}

// peersOpen returns the numbers of the opened devices that can use the memory of d.
func (d *Device) peersOpen() (list []int32) {
	contexts.Range(func(key, _ any) bool {
		if n := key.(int); n != d.index {
			if can, err := canPeer(n, d.index); can && err == nil {
				list = append(list, int32(n))
			}
		}
		return true
	})
	return list
}
