package cuda

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// VirtualMemory is device memory that the pool can give back in parts: each
// large segment is a range of addresses behind which lie chunks of memory that
// come and go one by one, as in PyTorch's expandable segments. It is a
// [pool.Divider]: a pool over it fills its limit where one over
// [Device.Memory] is left with fragments, and pays for that when it takes and
// gives back large segments (results/2026-11-21-cuda-virtual).
type VirtualMemory struct {
	DeviceMemory
	granule int64 // sizes of chunks are multiples of it
	least   int64 // bytes of a chunk

	mu   sync.Mutex
	maps []*mapping // by address
}

// A mapping is a range of addresses that came from one Allocate.
type mapping struct {
	base         uintptr
	bytes, chunk int64
	left         int64 // bytes that have not been given back
}

// To map a chunk and give it back takes the driver about 1 ms for 2 MiB as for
// 8 MiB, and 0.2 ms for 64 MiB, on an H200: chunks are large and few. Segments
// that are smaller than two come and go as a whole, which takes 0.1 ms.
const (
	leastChunk = 32 << 20
	mostChunks = 32 // of a segment
)

// Virtual returns the device's memory, to be given back in parts. It fails if
// the device cannot map memory. Devices that are opened later cannot use the
// memory but through copies; those opened before can where there is peer access.
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
	v.mu.Lock()
	defer v.mu.Unlock()
	k, _ := v.search(m.base)
	v.maps = slices.Insert(v.maps, k, m)
	return m.base, nil
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// search returns where the mapping with that base is, or should be.
func (v *VirtualMemory) search(base uintptr) (int, bool) {
	return slices.BinarySearchFunc(v.maps, base, func(m *mapping, a uintptr) int { return cmp.Compare(m.base, a) })
}

// find returns the mapping that an address lies in, or nil.
func (v *VirtualMemory) find(addr uintptr) *mapping {
	v.mu.Lock()
	defer v.mu.Unlock()
	k, exact := v.search(addr)
	if !exact {
		k--
	}
	if k < 0 || addr >= v.maps[k].base+uintptr(v.maps[k].bytes) {
		return nil
	}
	return v.maps[k]
}

// Part is that of [pool.Divider]: whole chunks, of which the last of a segment
// may be shorter.
func (v *VirtualMemory) Part(addr uintptr, bytes int64) (part uintptr, size int64) {
	m := v.find(addr)
	if m == nil {
		return 0, 0
	}
	from := roundUp(int64(addr-m.base), m.chunk)
	to := int64(addr-m.base) + bytes
	if to < m.bytes {
		to = to / m.chunk * m.chunk
	}
	if to <= from {
		return 0, 0
	}
	return m.base + uintptr(from), to - from
}

// Release gives back what Allocate or Part returned, or any whole chunks. It
// waits for the device first, as giving back memory of [Device.Memory] does.
func (v *VirtualMemory) Release(addr uintptr, bytes int64, stream uint32) error {
	m := v.find(addr)
	if m == nil {
		return v.DeviceMemory.Release(addr, bytes, stream)
	}
	if part, size := v.Part(addr, bytes); part != addr || size != bytes {
		return fmt.Errorf("cuda: %d bytes at %#x are not whole chunks of virtual memory", bytes, addr)
	}
	if err := unmapChunks(v.dev, addr, roundUp(bytes, v.granule), m.chunk); err != nil {
		return err
	}
	if v.forget(m, bytes) {
		// The memory is back already. Addresses are plenty: if they are lost, no more is.
		_ = unmapAddresses(v.dev, m.base, roundUp(m.bytes, v.granule))
	}
	return nil
}

// forget counts bytes of m as given back, and says whether they were the last.
func (v *VirtualMemory) forget(m *mapping, bytes int64) (last bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m.left -= bytes; m.left > 0 {
		return false
	}
	k, _ := v.search(m.base)
	v.maps = slices.Delete(v.maps, k, k+1)
	return true
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
