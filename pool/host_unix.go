//go:build unix

package pool

import (
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// Allocate maps new memory. It ignores the stream. It fails for more bytes than an int can hold,
// which a system of 32 bits could not address.
func (Host) Allocate(bytes int64, _ uint32) (uintptr, error) {
	if bytes > math.MaxInt {
		return 0, fmt.Errorf("pool: mmap of %v: %w", pressure.Bytes(bytes), syscall.ENOMEM)
	}
	memory, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return 0, fmt.Errorf("pool: mmap of %v: %w", pressure.Bytes(bytes), err)
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(memory))), nil
}

// Release unmaps what Allocate mapped.
func (Host) Release(addr uintptr, bytes int64, _ uint32) error {
	if err := syscall.Munmap(unsafe.Slice((*byte)(pointer(addr)), bytes)); err != nil {
		return fmt.Errorf("pool: munmap of %v: %w", pressure.Bytes(bytes), err)
	}
	return nil
}
