//go:build !cuda || !cgo

package cuda

// Never reached: without CUDA every benchmark is skipped.

func benchWithin(*Stream) error         { return ErrNoCUDA }
func benchBare(*Stream) error           { return ErrNoCUDA }
func benchLocked(*Device, func()) error { return ErrNoCUDA }
