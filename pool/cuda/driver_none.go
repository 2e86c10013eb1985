//go:build (!cuda || !cgo) && !cudasim

package cuda

import (
	"unsafe"

	"github.com/eagergc/eagergc/pool"
)

func start() error               { return ErrNoCUDA }
func countDevices() (int, error) { return 0, ErrNoCUDA }
func calls() []CallCount         { return nil }

// The rest of the driver is never called, since no Device can be had.
var (
	retainContext                                      func(int) (handle, error)
	releaseContext                                     func(int) error
	deviceName                                         func(int) (string, error)
	canPeer                                            func(n, peer int) (bool, error)
	memInfo                                            func(*Device) (free, total int64, err error)
	syncContext                                        func(*Device) error
	enablePeer                                         func(*Device, int) error
	mapGranule                                         func(*Device) (int64, error)
	memAlloc, hostAlloc, managedAlloc, addressReserve  func(*Device, int64) (uintptr, error)
	memFree, hostFree, hostUnregister                  func(*Device, uintptr) error
	hostRegister, addressFree, unmapChunks             func(*Device, uintptr, int64) error
	advise                                             func(*Device, uintptr, int64, Advice, int) error
	chunksCreate                                       func(*Device, int64, []chunk) error
	chunksRelease                                      func(*Device, []chunk) error
	mapChunks                                          func(*Device, uintptr, int64, []chunk, []int32) error
	mapAccess                                          func(*Device, uintptr, int64, []int32) error
	poolCreate                                         func(*Device, uint64) (handle, error)
	poolCurrent, streamCreate                          func(*Device) (handle, error)
	poolDestroy, moduleUnload, eventDestroy, eventSync func(*Device, handle) error
	graphFree, graphDestroy                            func(*Device, handle) error
	poolThreshold                                      func(*Device, handle, uint64) error
	poolTrim                                           func(*Device, handle, int64) error
	poolUsage                                          func(*Device, handle) (pool.Usage, error)
	poolAlloc                                          func(d *Device, pool, stream handle, bytes int64) (uintptr, error)
	poolFree                                           func(*Device, handle, uintptr) error
	eventCreate                                        func(*Device) (handle, error)
	eventDone                                          func(*Device, handle) (bool, error)
	graphInstantiate                                   func(*Device, handle) (handle, error)
	moduleLoad                                         func(*Device, string) (handle, error)
	moduleFunction                                     func(*Device, handle, string) (handle, error)
	streamDestroy, streamSync, captureBegin            func(*Stream) error
	streamIdle                                         func(*Stream) (bool, error)
	captureEnd                                         func(*Stream) (handle, error)
	streamWait, eventRecord, graphLaunch               func(*Stream, handle) error
	prefetch                                           func(*Stream, uintptr, int64, int) error
	launch                                             func(*Stream, handle, Dim, Dim, int, []byte) error
	copyAsync                                          func(s *Stream, dst, src uintptr, bytes int64) error
	copyPeer                                           func(s *Stream, dst uintptr, to int, src uintptr, from int, bytes int64) error
	upload                                             func(*Stream, uintptr, unsafe.Pointer, int64) (pinned bool, err error)
	download                                           func(*Stream, unsafe.Pointer, uintptr, int64) error
	fill                                               func(*Stream, uintptr, []byte, int64) error
)
