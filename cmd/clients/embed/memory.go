package main

/*
#include <stddef.h>
#include <stdint.h>

// stats fills PJRT_Device_MemoryStats_Args, which has fewer than 64 words. Functions have fixed
// places in PJRT_Api.
static int stats(void **api, void *device, int64_t *words) {
	words[0] = 64 * sizeof(*words);
	words[2] = (int64_t)(intptr_t)device;
	return ((void *(*)(void *))api[39])(words) == NULL;
}
*/
import "C"

import (
	"reflect"
	"runtime/debug"
	"unsafe"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends"

	"github.com/eagergc/eagergc/gc/with/gomlx"
)

// memory returns Go's cycles, PJRT's buffers, and bytes by XLA's allocator and eager's collector.
func memory(b backends.Backend) map[string]int64 {
	var cycles debug.GCStats
	debug.ReadGCStats(&cycles)
	all := map[string]int64{"cycles": cycles.NumGC, "buffers": pjrt.BuffersAlive()}
	if eager, is := b.(*gomlx.Backend); is {
		b = eager.Backend
		for _, source := range eager.Collector(0).Snapshot().Sources {
			all["live"], all["limit"] = source.Live, source.Limit
		}
	}
	if client := reflect.Indirect(reflect.ValueOf(b)).FieldByName("client"); client.IsValid() { // go-xla hides it
		api := client.Elem().FieldByName("plugin").Elem().FieldByName("api").UnsafePointer()
		device := client.Elem().FieldByName("addressableDevices").Index(0).Elem().FieldByName("cDevice").UnsafePointer()
		var words [64]C.int64_t
		if C.stats((*unsafe.Pointer)(api), device, &words[0]) != 0 {
			all["in_use"], all["peak"], all["arena"] = int64(words[3]), int64(words[4]), int64(words[10])
		}
	}
	return all
}
