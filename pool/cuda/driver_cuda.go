//go:build cuda && cgo

package cuda

/*
#cgo LDFLAGS: -lcuda
#include "shim.h"
#cgo noescape eg_mem_alloc
#cgo noescape eg_host_alloc
#cgo noescape eg_managed_alloc
#cgo noescape eg_granule
#cgo noescape eg_addresses
#cgo noescape eg_chunks_create
#cgo noescape eg_chunks_release
#cgo noescape eg_map
#cgo noescape eg_access
#cgo noescape eg_count
#cgo noescape eg_pool_create
#cgo noescape eg_pool_usage
#cgo noescape eg_pool_alloc
#cgo noescape eg_launch
#cgo nocallback eg_mem_alloc
#cgo nocallback eg_host_alloc
#cgo nocallback eg_managed_alloc
#cgo nocallback eg_granule
#cgo nocallback eg_addresses
#cgo nocallback eg_chunks_create
#cgo nocallback eg_chunks_release
#cgo nocallback eg_map
#cgo nocallback eg_access
#cgo nocallback eg_count
#cgo nocallback eg_pool_create
#cgo nocallback eg_pool_usage
#cgo nocallback eg_pool_alloc
#cgo nocallback eg_launch
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/eagergc/eagergc/pool"
)

// start initialises the driver. The package cu does so too when the program starts and ends the
// program if that fails, unless it was compiled against compat/cuda.h: see setup.sh.
func start() error { return check("cuInit", -1, C.eg_init()) }

// check turns the result of a driver call into an error.
func check(call string, device int, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return &Error{Call: call, Device: device, Code: int(r), Name: C.GoString(C.eg_error_name(r))}
}

// checkCU does the same for a call made through cu, whose error type is not exported: its value is
// the driver's code.
func checkCU(call string, device int, err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if v := reflect.ValueOf(e); v.Kind() == reflect.Int {
			return check(call, device, C.CUresult(v.Int()))
		}
	}
	return err
}

// handleOf reads the C handle out of one of cu's one-field structs.
func handleOf[T cu.CUContext | cu.Stream | cu.Event | cu.Function | cu.Module](v T) handle {
	return *(*handle)(unsafe.Pointer(&v))
}

func fromHandle[T cu.CUContext | cu.Stream | cu.Event | cu.Function | cu.Module](h handle) T {
	return *(*T)(unsafe.Pointer(&h))
}

// within runs f, which calls the named function of the driver through cu. The context of d is
// current on the thread that f runs on.
func within(call string, d *Device, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(fromHandle[cu.CUContext](d.ctx)); err != nil {
		return checkCU("cuCtxSetCurrent", d.index, err)
	}
	began := time.Now()
	err := f()
	found, _ := throughCU.LoadOrStore(call, new(counter))
	n := found.(*counter)
	n.calls.Add(1)
	n.ns.Add(int64(time.Since(began)))
	return checkCU(call, d.index, err)
}

// throughCU counts the calls that are made through cu, by name; the shim counts its own.
var throughCU sync.Map // of *counter

type counter struct{ calls, ns atomic.Int64 }

func countDevices() (int, error) {
	n, err := cu.NumDevices()
	return n, checkCU("cuDeviceGetCount", -1, err)
}

func retainContext(n int) (ctx handle, err error) {
	c, err := cu.Device(n).RetainPrimaryCtx()
	return handleOf(c), checkCU("cuDevicePrimaryCtxRetain", n, err)
}

func releaseContext(n int) error {
	return checkCU("cuDevicePrimaryCtxRelease", n, cu.Device(n).ReleasePrimaryCtx())
}

func deviceName(n int) (string, error) {
	var name [256]C.char
	if r := C.cuDeviceGetName(&name[0], C.int(len(name)), C.CUdevice(n)); r != C.CUDA_SUCCESS {
		return "", check("cuDeviceGetName", n, r)
	}
	return C.GoString(&name[0]), nil
}

func memInfo(d *Device) (free, total int64, err error) {
	err = within("cuMemGetInfo", d, func() (err error) { free, total, err = cu.MemInfo(); return err })
	return free, total, err
}

func syncContext(d *Device) error {
	return check("cuCtxSynchronize", d.index, C.eg_synchronize(C.handle(d.ctx)))
}

// calls returns how often and how long the driver was called, by the shim's list.
func calls() (all []CallCount) {
	for n := range C.int(C.N_calls) {
		var name *C.char
		var count, ns C.uint64_t
		C.eg_count(n, &name, &count, &ns)
		all = append(all, CallCount{C.GoString(name), int64(count), time.Duration(ns)})
	}
	throughCU.Range(func(name, n any) bool {
		c := n.(*counter)
		all = append(all, CallCount{name.(string), c.calls.Load(), time.Duration(c.ns.Load())})
		return true
	})
	return all
}

func memAlloc(d *Device, bytes int64) (ptr uintptr, err error) {
	var p C.uint64_t
	err = check("cuMemAlloc", d.index, C.eg_mem_alloc(C.handle(d.ctx), C.size_t(bytes), &p))
	return uintptr(p), err
}

func memFree(d *Device, ptr uintptr) error {
	return check("cuMemFree", d.index, C.eg_mem_free(C.handle(d.ctx), C.uint64_t(ptr)))
}

func hostAlloc(d *Device, bytes int64) (ptr uintptr, err error) {
	var p C.uint64_t
	err = check("cuMemHostAlloc", d.index, C.eg_host_alloc(C.handle(d.ctx), C.size_t(bytes), &p))
	return uintptr(p), err
}

func hostFree(d *Device, ptr uintptr) error {
	return check("cuMemFreeHost", d.index, C.eg_host_free(C.handle(d.ctx), C.uint64_t(ptr)))
}

// hostRegister locks pages of memory that is not the driver's.
func hostRegister(d *Device, ptr uintptr, bytes int64) error {
	return check("cuMemHostRegister", d.index, C.eg_host_register(C.handle(d.ctx), C.uint64_t(ptr), C.size_t(bytes)))
}

func hostUnregister(d *Device, ptr uintptr) error {
	return check("cuMemHostUnregister", d.index, C.eg_host_unregister(C.handle(d.ctx), C.uint64_t(ptr)))
}

func managedAlloc(d *Device, bytes int64) (ptr uintptr, err error) {
	var p C.uint64_t
	err = check("cuMemAllocManaged", d.index, C.eg_managed_alloc(C.handle(d.ctx), C.size_t(bytes), &p))
	return uintptr(p), err
}

func prefetch(s *Stream, ptr uintptr, bytes int64, device int) error {
	return within("cuMemPrefetchAsync", s.dev, func() error {
		return cu.DevicePtr(ptr).MemPrefetchAsync(bytes, cu.Device(device), fromHandle[cu.Stream](s.h))
	})
}

func advise(d *Device, ptr uintptr, bytes int64, a Advice, device int) error {
	return within("cuMemAdvise", d, func() error {
		return cu.DevicePtr(ptr).MemAdvise(bytes, cu.MemAdvice(a), cu.Device(device))
	})
}

// mapGranule returns the size of the smallest chunk of memory that can be mapped.
func mapGranule(d *Device) (int64, error) {
	var n C.size_t
	err := check("cuMemGetAllocationGranularity", d.index, C.eg_granule(C.handle(d.ctx), C.int(d.index), &n))
	return int64(n), err
}

func addressReserve(d *Device, bytes int64) (uintptr, error) {
	var p C.uint64_t
	err := check("cuMemAddressReserve", d.index, C.eg_addresses(C.handle(d.ctx), C.size_t(bytes), &p))
	return uintptr(p), err
}

func addressFree(d *Device, addr uintptr, bytes int64) error {
	return check("cuMemAddressFree", d.index, C.eg_free_addresses(C.handle(d.ctx), C.uint64_t(addr), C.size_t(bytes)))
}

// chunksCreate makes as many chunks as memory has room for, or none.
func chunksCreate(d *Device, bytes int64, memory []chunk) error {
	return check("cuMemCreate", d.index, C.eg_chunks_create(C.handle(d.ctx), C.int(d.index), C.size_t(bytes),
		C.int(len(memory)), (*C.uint64_t)(unsafe.SliceData(memory))))
}

func chunksRelease(d *Device, memory []chunk) error {
	return check("cuMemRelease", d.index, C.eg_chunks_release(C.handle(d.ctx), C.int(len(memory)),
		(*C.uint64_t)(unsafe.SliceData(memory))))
}

// mapChunks puts chunks behind neighbouring addresses, for the devices given.
func mapChunks(d *Device, addr uintptr, bytes int64, memory []chunk, users []int32) error {
	return check("cuMemMap", d.index, C.eg_map(C.handle(d.ctx), C.uint64_t(addr), C.size_t(bytes), C.int(len(memory)),
		(*C.uint64_t)(unsafe.SliceData(memory)), (*C.int32_t)(unsafe.SliceData(users)), C.int(len(users))))
}

// mapAccess lets devices use mapped memory.
func mapAccess(d *Device, addr uintptr, bytes int64, users []int32) error {
	return check("cuMemSetAccess", d.index, C.eg_access(C.handle(d.ctx), C.uint64_t(addr), C.size_t(bytes),
		(*C.int32_t)(unsafe.SliceData(users)), C.int(len(users))))
}

func unmapChunks(d *Device, addr uintptr, bytes int64) error {
	return check("cuMemUnmap", d.index, C.eg_unmap(C.handle(d.ctx), C.uint64_t(addr), C.size_t(bytes)))
}

func poolCreate(d *Device, threshold uint64) (pool handle, err error) {
	var p C.handle
	err = check("cuMemPoolCreate", d.index,
		C.eg_pool_create(C.handle(d.ctx), C.int(d.index), C.uint64_t(threshold), &p))
	return handle(p), err
}

func poolDestroy(d *Device, pool handle) error {
	return check("cuMemPoolDestroy", d.index, C.eg_pool_destroy(C.handle(d.ctx), C.handle(pool)))
}

func poolThreshold(d *Device, pool handle, bytes uint64) error {
	return check("cuMemPoolSetAttribute", d.index,
		C.eg_pool_threshold(C.handle(d.ctx), C.handle(pool), C.uint64_t(bytes)))
}

func poolTrim(d *Device, pool handle, keep int64) error {
	return check("cuMemPoolTrimTo", d.index, C.eg_pool_trim(C.handle(d.ctx), C.handle(pool), C.size_t(keep)))
}

func poolUsage(d *Device, of handle) (pool.Usage, error) {
	var u [4]C.uint64_t
	err := check("cuMemPoolGetAttribute", d.index, C.eg_pool_usage(C.handle(d.ctx), C.handle(of), &u[0]))
	return pool.Usage{Reserved: int64(u[0]), ReservedPeak: int64(u[1]), Used: int64(u[2]), UsedPeak: int64(u[3])}, err
}

// poolCurrent returns the pool that the driver takes memory from where none is named.
func poolCurrent(d *Device) (pool handle, err error) {
	var p C.handle
	err = check("cuDeviceGetMemPool", d.index, C.eg_pool_current(C.handle(d.ctx), C.int(d.index), &p))
	return handle(p), err
}

func poolAlloc(d *Device, pool, stream handle, bytes int64) (ptr uintptr, err error) {
	var p C.uint64_t
	err = check("cuMemAllocFromPoolAsync", d.index,
		C.eg_pool_alloc(C.handle(d.ctx), C.handle(pool), C.size_t(bytes), C.handle(stream), &p))
	return uintptr(p), err
}

func poolFree(d *Device, stream handle, ptr uintptr) error {
	return check("cuMemFreeAsync", d.index, C.eg_pool_free(C.handle(d.ctx), C.uint64_t(ptr), C.handle(stream)))
}

func streamCreate(d *Device) (h handle, err error) {
	err = within("cuStreamCreate", d, func() error {
		s, err := cu.MakeStream(cu.NonBlocking)
		h = handleOf(s)
		return err
	})
	return h, err
}

func streamDestroy(s *Stream) error {
	stream := fromHandle[cu.Stream](s.h)
	return within("cuStreamDestroy", s.dev, stream.Destroy)
}

// streamIdle asks whether all work of s has ended.
func streamIdle(s *Stream) (bool, error) {
	return ready("cuStreamQuery", s.dev, C.eg_stream_query(C.handle(s.dev.ctx), C.handle(s.h)))
}

func ready(call string, d *Device, r C.CUresult) (bool, error) {
	if r == C.CUDA_ERROR_NOT_READY {
		return false, nil
	}
	return r == C.CUDA_SUCCESS, check(call, d.index, r)
}

func streamSync(s *Stream) error {
	return within("cuStreamSynchronize", s.dev, func() error { return fromHandle[cu.Stream](s.h).Synchronize() })
}

func streamWait(s *Stream, e handle) error {
	return check("cuStreamWaitEvent", s.dev.index,
		C.eg_stream_wait(C.handle(s.dev.ctx), C.handle(s.h), C.handle(e)))
}

func captureBegin(s *Stream) error {
	return check("cuStreamBeginCapture", s.dev.index, C.eg_capture_begin(C.handle(s.dev.ctx), C.handle(s.h)))
}

func captureEnd(s *Stream) (graph handle, err error) {
	var g C.handle
	err = check("cuStreamEndCapture", s.dev.index, C.eg_capture_end(C.handle(s.dev.ctx), C.handle(s.h), &g))
	return handle(g), err
}

func graphInstantiate(d *Device, graph handle) (exec handle, err error) {
	var e C.handle
	err = check("cuGraphInstantiate", d.index, C.eg_graph_instantiate(C.handle(d.ctx), C.handle(graph), &e))
	return handle(e), err
}

func graphFree(d *Device, graph handle) error {
	return check("cuGraphDestroy", d.index, C.eg_graph_free(C.handle(d.ctx), C.handle(graph)))
}

func graphLaunch(s *Stream, exec handle) error {
	return check("cuGraphLaunch", s.dev.index, C.eg_graph_launch(C.handle(s.dev.ctx), C.handle(exec), C.handle(s.h)))
}

func graphDestroy(d *Device, exec handle) error {
	return check("cuGraphExecDestroy", d.index, C.eg_graph_destroy(C.handle(d.ctx), C.handle(exec)))
}

func eventCreate(d *Device) (h handle, err error) {
	err = within("cuEventCreate", d, func() error {
		e, err := cu.MakeEvent(cu.DisableTiming)
		h = handleOf(e)
		return err
	})
	return h, err
}

func eventDestroy(d *Device, e handle) error {
	event := fromHandle[cu.Event](e)
	return within("cuEventDestroy", d, func() error { return cu.DestroyEvent(&event) })
}

func eventRecord(s *Stream, e handle) error {
	return check("cuEventRecord", s.dev.index,
		C.eg_event_record(C.handle(s.dev.ctx), C.handle(e), C.handle(s.h)))
}

func eventDone(d *Device, e handle) (bool, error) {
	return ready("cuEventQuery", d, C.eg_event_query(C.handle(d.ctx), C.handle(e)))
}

func eventSync(d *Device, e handle) error {
	return within("cuEventSynchronize", d, func() error { return fromHandle[cu.Event](e).Synchronize() })
}

func moduleLoad(d *Device, image string) (h handle, err error) {
	err = within("cuModuleLoadData", d, func() error {
		m, err := cu.LoadData(image)
		h = handleOf(m)
		return err
	})
	return h, err
}

func moduleUnload(d *Device, m handle) error {
	return within("cuModuleUnload", d, fromHandle[cu.Module](m).Unload)
}

func moduleFunction(d *Device, m handle, name string) (h handle, err error) {
	err = within("cuModuleGetFunction", d, func() error {
		f, err := fromHandle[cu.Module](m).Function(name)
		h = handleOf(f)
		return err
	})
	if err != nil {
		err = fmt.Errorf("%w: kernel %s", err, name)
	}
	return h, err
}

func launch(s *Stream, fn handle, grid, block Dim, shared int, args []byte) error {
	packed := bytesOf(unsafe.Pointer(unsafe.SliceData(args)))
	return check("cuLaunchKernel", s.dev.index, C.eg_launch(C.handle(s.dev.ctx), C.handle(fn),
		C.uint(grid.X), C.uint(grid.Y), C.uint(grid.Z), C.uint(block.X), C.uint(block.Y), C.uint(block.Z),
		C.uint(shared), C.handle(s.h), packed, C.size_t(len(args))))
}

// copyAsync copies between any two addresses that the driver knows.
func copyAsync(s *Stream, dst, src uintptr, bytes int64) error {
	return check("cuMemcpyAsync", s.dev.index, C.eg_copy(C.handle(s.dev.ctx), C.uint64_t(dst), C.uint64_t(src),
		C.size_t(bytes), C.handle(s.h)))
}

// bytesOf says that p points to plain bytes, whatever else lies in the same Go object: cgo would
// look for pointers there.
func bytesOf(p unsafe.Pointer) *C.uint8_t { return (*C.uint8_t)(p) }

// upload and download copy from and to memory of the Go heap or any other. The driver has written
// it when the stream has been synchronised, and has read it when upload returns, unless it is
// pinned.
func upload(s *Stream, dst uintptr, src unsafe.Pointer, bytes int64) (pinned bool, err error) {
	var known C.int
	from := bytesOf(src)
	err = check("cuMemcpyHtoDAsync", s.dev.index, C.eg_upload(C.handle(s.dev.ctx), C.uint64_t(dst), from,
		C.size_t(bytes), C.handle(s.h), &known))
	return known != 0, err
}

func download(s *Stream, dst unsafe.Pointer, src uintptr, bytes int64) error {
	to := bytesOf(dst)
	return check("cuMemcpyDtoHAsync", s.dev.index, C.eg_download(C.handle(s.dev.ctx), to, C.uint64_t(src),
		C.size_t(bytes), C.handle(s.h)))
}

func copyPeer(s *Stream, dst uintptr, to int, src uintptr, from int, bytes int64) error {
	return check("cuMemcpyPeerAsync", s.dev.index, C.eg_copy_peer(C.handle(s.dev.ctx), C.uint64_t(dst), C.handle(openContexts()[to]),
		C.uint64_t(src), C.handle(openContexts()[from]), C.size_t(bytes), C.handle(s.h)))
}

// fill writes a pattern of 1, 2 or 4 bytes.
func fill(s *Stream, dst uintptr, pattern []byte, count int64) error {
	var word [4]byte
	copy(word[:], pattern)
	return check("cuMemsetAsync", s.dev.index, C.eg_fill(C.handle(s.dev.ctx), C.uint64_t(dst),
		C.uint32_t(binary.LittleEndian.Uint32(word[:])), C.int(len(pattern)), C.size_t(count), C.handle(s.h)))
}

// canPeer asks whether device n can use the memory of device peer.
func canPeer(n, peer int) (bool, error) {
	var yes C.int
	r := C.cuDeviceCanAccessPeer(&yes, C.CUdevice(n), C.CUdevice(peer))
	return yes != 0, check("cuDeviceCanAccessPeer", n, r)
}

// enablePeer lets kernels on d use the memory of device peer. Once is enough.
func enablePeer(d *Device, peer int) error {
	return within("cuCtxEnablePeerAccess", d, func() error {
		err := fromHandle[cu.CUContext](openContexts()[peer]).EnablePeerAccess(0)
		if errors.Is(err, cu.PeerAccessAlreadyEnabled) {
			return nil
		}
		return err
	})
}
