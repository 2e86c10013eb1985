//go:build !unix

package pool

import (
	"errors"
	"fmt"
	"runtime"
)

// Allocate returns an error: host memory is not implemented on this system.
func (Host) Allocate(int64, uint32) (uintptr, error) {
	return 0, fmt.Errorf("pool: no host memory on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Release returns an error: there is nothing to give back.
func (Host) Release(uintptr, int64, uint32) error {
	return fmt.Errorf("pool: no host memory on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
