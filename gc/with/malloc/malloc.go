//go:build linux

// Package malloc is for programs whose memory comes from C's malloc (glibc's): the calls of a C
// library, or their own. It has nothing for counting: that is for package pressure, or for gc.Watch
// with the first result of [Stats].
//
//	import _ "github.com/eagergc/eagergc/gc/with/malloc"
//
// lets gc.Collector.Diagnose tell what is in use from what the allocator keeps. (Collectors have it give that back without this package: see gc.Caps.)
//
// It needs cgo, which links the program to the C library: that is why it is a module of its own.
package malloc

// #include <malloc.h>
import "C"

import "github.com/eagergc/eagergc/gc"

func init() { gc.SetAllocatorStats(Stats) }

// Stats returns the bytes that malloc has handed out, and those that it has free and
// keeps, in all its arenas. It takes each arena's lock for some microseconds.
//
// (mallinfo2, glibc 2.33. What is free still has the pages that were never given back.)
func Stats() (inUse, kept int64) {
	m := C.mallinfo2()
	return int64(m.uordblks + m.hblkhd), int64(m.fordblks)
}
