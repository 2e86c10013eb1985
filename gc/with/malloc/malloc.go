//go:build linux

// Package malloc is for programs whose memory comes from C's malloc (glibc's): the calls of a C
// library, or their own.
//
//	import _ "github.com/eagergc/eagergc/gc/with/malloc"
//
// lets gc.Collector.Diagnose tell what is in use from what the allocator keeps, and gc/auto
// give the latter back to the system where it is much, at most each two minutes.
// [Alloc] is malloc for an owner that a cycle finds dead, [Watch] a gauge for what others allocate.
//
// It needs cgo, which links the program to the C library: that is why it is a module of its own.
package malloc

// #include <malloc.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/auto"
)

func init() {
	gc.SetAllocatorStats(Stats)
	auto.SetTrim(Stats, Trim)
}

// Stats returns the bytes that malloc has handed out, and those that it has free and
// keeps, in all its arenas. It takes each arena's lock for some microseconds.
//
// (mallinfo2, glibc 2.33. What is free still has the pages that were never given back.)
func Stats() (inUse, kept int64) {
	m := C.mallinfo2()
	return int64(m.uordblks + m.hblkhd), int64(m.fordblks)
}

// Watch makes c collect for what malloc has handed out and not got back. That is nearer to what the program
// holds than gc/auto's resident memory, in which free memory that malloc keeps counts. The gauge is
// the caller's, who may close it.
func Watch(c *gc.Collector) *gc.Gauge {
	return gc.Watch(c, func() int64 { inUse, _ := Stats(); return inUse })
}

// Trim gives whole free pages of all arenas back to the system. It reports whether there were any.
// It takes each arena's lock for as long as that takes: milliseconds for each 100 MiB.
func Trim() bool { return C.malloc_trim(0) == 1 }

// ErrNoMemory is malloc's.
var ErrNoMemory = errors.New("malloc: out of memory")

// Alloc returns size bytes of C memory that go back some time after owner has become
// unreachable: the collector counts them from now on. The memory is not cleared. Release
// gives it back earlier. Owner is as [gc.Own] says.
func Alloc[T any](c *gc.Collector, owner *T, size int) (unsafe.Pointer, gc.Handle, error) {
	p, err := malloc(size)
	if err != nil {
		return nil, gc.Handle{}, err
	}
	return p, gc.Own(c, owner, int64(size), Free, p), nil
}

func malloc(size int) (unsafe.Pointer, error) {
	p := C.malloc(C.size_t(size))
	if p == nil {
		return nil, ErrNoMemory
	}
	return p, nil
}

// Free is free. What [Alloc] returned goes back by its handle instead.
func Free(p unsafe.Pointer) { C.free(p) }
