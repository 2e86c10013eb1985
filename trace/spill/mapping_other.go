//go:build !linux

package spill

import (
	"errors"
	"unsafe"
)

const canMap = false

// A mapping exists on Linux only.
type mapping struct{}

func newMapping() (*mapping, error)         { return nil, errors.ErrUnsupported }
func (*mapping) grow(int64) ([]byte, error) { return nil, errors.ErrUnsupported }
func (*mapping) close()                     {}
func freeMapping(unsafe.Pointer)            {}
