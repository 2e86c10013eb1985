//go:build linux

// Package malloc reads the statistics of glibc's malloc. With the import
//
//	import _ "github.com/eagergc/eagergc/gc/with/malloc"
//
// the diagnosis of gc/debug distinguishes memory in use from free memory that the allocator keeps. To
// count memory, use package pressure, or gc.Watch with the first result of [Stats]. To return free
// memory to the system, import gc/auto/trim instead.
//
// The package needs cgo, which links the program to the C library. So it is a module of its own.
package malloc

// #include <malloc.h>
import "C"

import "github.com/eagergc/eagergc/gc"

func init() { gc.SetAllocatorStats(Stats) }

// Stats returns the bytes that malloc has handed out, and the free bytes that it keeps, in all its
// arenas. Kept bytes include pages that were returned to the system. Stats calls mallinfo2 of glibc
// 2.33, which takes the lock of each arena for some microseconds.
func Stats() (inUse, kept int64) {
	m := C.mallinfo2()
	return int64(m.uordblks + m.hblkhd), int64(m.fordblks)
}
