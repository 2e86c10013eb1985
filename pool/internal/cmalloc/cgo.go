//go:build cgo

// Package cmalloc reaches the C library's allocator, for benchmarks to measure
// the pool against.
package cmalloc

/*
#cgo noescape get
#cgo nocallback get
#cgo noescape put
#cgo nocallback put
#include <stdlib.h>
static void *get(size_t n) { return malloc(n); }
static void put(void *p) { free(p); }
*/
import "C"

import "unsafe"

// Available says whether this program was built with cgo.
const Available = true

// Malloc is malloc of the C library.
func Malloc(bytes int64) unsafe.Pointer { return C.get(C.size_t(bytes)) }

// Free is free of the C library.
func Free(p unsafe.Pointer) { C.put(p) }
