//go:build cgo

package gomlx

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>

// total returns the bytes of a CUDA device, or 0 without a device or driver.
static size_t total(int device) {
	size_t bytes = 0;
	int handle = 0;
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda) return 0;
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
	int (*get)(int *, int) = (int (*)(int *, int))dlsym(cuda, "cuDeviceGet");
	int (*mem)(size_t *, int) = (int (*)(size_t *, int))dlsym(cuda, "cuDeviceTotalMem_v2");
	if (init && get && mem && init(0) == 0 && get(&handle, device) == 0 && mem(&bytes, handle) != 0) bytes = 0;
	return bytes;
}
*/
import "C"

// deviceMemory returns the bytes of a CUDA device, or 0 if they are not known.
func deviceMemory(device int) int64 { return int64(C.total(C.int(device))) }
