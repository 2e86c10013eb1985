//go:build cuda && cgo

package cuda

import "gorgonia.org/cu"

// benchWithin asks a stream through cu, with the context made current first.
func benchWithin(s *Stream) error {
	return within("cuStreamQuery", s.dev, func() error { return fromHandle[cu.Stream](s.h).Query() })
}

// benchBare asks a stream through cu, as it is.
func benchBare(s *Stream) error { return fromHandle[cu.Stream](s.h).Query() }

func benchLocked(d *Device, f func()) error {
	return within("cuCtxSetCurrent", d, func() error { f(); return nil })
}
