//go:build unix

package pool

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/eagergc/eagergc/pressure"
)

// Allocate maps new memory. It ignores the stream.
func (Host) Allocate(bytes int64, _ uint32) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0, fmt.Errorf("pool: mmap of %v: %w", pressure.Bytes(bytes), err)
	}
	return uintptr(p), nil
}

// Release unmaps what Allocate mapped.
func (Host) Release(addr uintptr, bytes int64, _ uint32) error {
	if err := unix.MunmapPtr(pointer(addr), uintptr(bytes)); err != nil {
		return fmt.Errorf("pool: munmap of %v: %w", pressure.Bytes(bytes), err)
	}
	return nil
}
