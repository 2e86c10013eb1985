//go:build !linux || !cgo

package gomlx

// deviceMemory returns 0: the memory of devices is not known here.
func deviceMemory(int) int64 { return 0 }
