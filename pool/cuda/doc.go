// Package cuda gives package pool the memory of NVIDIA GPUs: device memory, memory of the driver's
// own pools, pinned host memory and managed memory. It needs the build tag cuda, cgo and a CUDA
// installation; setup.sh sets the compiler's flags for one. Without the tag the package builds too,
// and [Open] returns [ErrNoCUDA].
//
// # Devices and threads
//
// A [Device] holds the primary context of one GPU, so its memory can be shared with other libraries
// of the process. The driver has a current context for each OS thread, but goroutines move between
// threads. So every call of this package makes the device's context current and calls the driver on
// the same thread. No goroutine has to be locked to a thread. Everything is safe for concurrent use
// unless its comment says otherwise.
//
// # Stream order
//
// Work on a [Stream] runs in order. So memory that is freed while a stream still uses it can be
// reused on that stream at once. Another stream can reuse it only once an event has passed.
//
// # Waiting
//
// Waits for the GPU (streams, the device, copies to the host) are sync points. A wait first asks
// the driver whether work is left. If so, it goes through the device's pool or collector: see
// [Device.SyncThrough].
package cuda

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/pool"
)

// ErrNoCUDA is the error of [Count] and [Open] in a program that was built without the tag cuda.
var ErrNoCUDA = errors.New("cuda: built without the tag cuda")

// ErrNoDevice is the error of [Pools.Kernel] without a device.
var ErrNoDevice = errors.New("cuda: there is no GPU")

// An Error is a call of the driver that failed.
type Error struct {
	Call   string // the driver's function
	Device int    // -1 if the call is not one device's
	Code   int    // the driver's CUresult
	Name   string // the name of Code
}

// Codes of an [Error] that are branched on; cuda.h has them all.
const (
	codeOutOfMemory = 2
	codeStubLibrary = 34
)

// Is reports whether target is [pool.ErrOutOfMemory] and the driver found no memory.
func (e *Error) Is(target error) bool {
	return target == pool.ErrOutOfMemory && e.Code == codeOutOfMemory
}

func (e *Error) Error() string {
	if e.Code == codeStubLibrary {
		return "cuda: linked with the stub of the driver, and no driver found: " + e.Call
	}
	if e.Device < 0 {
		return fmt.Sprintf("cuda: %s: %s (%d)", e.Call, e.Name, e.Code)
	}
	return fmt.Sprintf("cuda: %s on device %d: %s (%d)", e.Call, e.Device, e.Name, e.Code)
}
