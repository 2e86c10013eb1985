package pool_test

import (
	"os"
	"syscall"

	"github.com/eagergc/eagergc/pool"
)

// HostChunks returns [Chunks] with memory of this machine behind them: places in a
// file that lies in memory, which can be mapped at one address after another, as
// chunks of a GPU's memory can. Each range of addresses has 4 GiB. Close gives the
// file back, after the pools.
func HostChunks(size int64) (c *Chunks, close func() error, err error) {
	memory, err := os.CreateTemp("/dev/shm", "chunks")
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(memory.Name()); err != nil {
		return nil, nil, err
	}
	f := &file{memory: memory, places: map[uintptr]int64{}}
	return &Chunks{Size: size, Room: 4 << 30, behind: f}, memory.Close, nil
}

// A file is memory whose places are mapped at addresses. Chunks guards it.
type file struct {
	pool.Host
	memory *os.File
	end    int64
	spare  []int64
	places map[uintptr]int64 // by the address
}

func (f *file) reserve(bytes int64) (uintptr, error) {
	return mmap(0, bytes, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE, -1, 0)
}

func (f *file) forget(addr uintptr, bytes int64) error {
	_, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, addr, uintptr(bytes), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// put maps at to what was mapped at from, where nothing is afterwards.
func (f *file) put(to, from uintptr, bytes int64) (err error) {
	place, known := f.places[from]
	if from != 0 {
		delete(f.places, from)
		if _, err = mmap(from, bytes, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE|syscall.MAP_FIXED, -1, 0); err != nil {
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
	_, err = mmap(to, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_FIXED, int(f.memory.Fd()), place)
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
	return place, f.memory.Truncate(f.end)
}

// mmap is the system call: package syscall's Mmap takes no address.
func mmap(at uintptr, bytes int64, prot, flags, fd int, place int64) (uintptr, error) {
	p, _, errno := syscall.Syscall6(syscall.SYS_MMAP, at, uintptr(bytes), uintptr(prot), uintptr(flags), uintptr(fd), uintptr(place))
	if errno != 0 {
		return 0, errno
	}
	return p, nil
}
