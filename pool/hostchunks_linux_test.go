package pool_test

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/eagergc/eagergc/pool"
)

// HostChunks returns [Chunks] with memory of this machine behind them: places in a
// file that lies in memory, which can be mapped at one address after another, as
// chunks of a GPU's memory can. Each range of addresses has 4 GiB. Close gives the
// file back, after the pools.
func HostChunks(size int64) (c *Chunks, close func() error, err error) {
	fd, err := unix.MemfdCreate("chunks", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, err
	}
	f := &file{fd: fd, places: map[uintptr]int64{}}
	return &Chunks{Size: size, Room: 4 << 30, behind: f}, func() error { return unix.Close(fd) }, nil
}

// A file is memory whose places are mapped at addresses. Chunks guards it.
type file struct {
	pool.Host
	fd     int
	end    int64
	spare  []int64
	places map[uintptr]int64 // by the address
}

func (f *file) reserve(bytes int64) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	return uintptr(p), err
}

func (f *file) forget(addr uintptr, bytes int64) error {
	return unix.MunmapPtr(pointer(addr), uintptr(bytes))
}

// put maps at to what was mapped at from, where nothing is afterwards.
func (f *file) put(to, from uintptr, bytes int64) (err error) {
	place, known := f.places[from]
	if from != 0 {
		delete(f.places, from)
		_, err = unix.MmapPtr(-1, 0, pointer(from), uintptr(bytes), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE|unix.MAP_FIXED)
		if err != nil {
			return err
		}
	}
	if to == 0 {
		f.spare = append(f.spare, place)
		return nil
	}
	if !known {
		if place, err = f.take(bytes); err != nil {
			return err
		}
	}
	f.places[to] = place
	_, err = unix.MmapPtr(f.fd, place, pointer(to), uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	return err
}

// take returns a place for new memory. All chunks of a pool have one size.
func (f *file) take(bytes int64) (place int64, err error) {
	if n := len(f.spare); n > 0 {
		place, f.spare = f.spare[n-1], f.spare[:n-1]
		return place, nil
	}
	place = f.end
	f.end += bytes
	return place, unix.Ftruncate(f.fd, f.end)
}

// pointer turns the address of memory outside the Go heap into a pointer.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
