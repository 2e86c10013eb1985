//go:build !cgo

// Package cmalloc reaches the C library's allocator, for benchmarks to measure
// the pool against. This program was built without it.
package cmalloc

import "unsafe"

// Available says whether this program was built with cgo.
const Available = false

// Malloc panics: there is no C library.
func Malloc(int64) unsafe.Pointer { panic("cmalloc: built without cgo") }

// Free panics: there is no C library.
func Free(unsafe.Pointer) { panic("cmalloc: built without cgo") }
