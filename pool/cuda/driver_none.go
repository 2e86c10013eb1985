//go:build (!cuda || !cgo) && !cudasim

package cuda

import (
	"unsafe"

	"github.com/eagergc/eagergc/pool"
)

// Without the tag only start is ever reached, since no Device can be had.

func start() error { return ErrNoCUDA }

func countDevices() (int, error)                                                  { return 0, ErrNoCUDA }
func retainContext(n int) (handle, error)                                         { return 0, ErrNoCUDA }
func releaseContext(n int) error                                                  { return ErrNoCUDA }
func deviceName(n int) (string, error)                                            { return "", ErrNoCUDA }
func memInfo(d *Device) (int64, int64, error)                                     { return 0, 0, ErrNoCUDA }
func syncContext(d *Device) error                                                 { return ErrNoCUDA }
func memAlloc(d *Device, bytes int64) (uintptr, error)                            { return 0, ErrNoCUDA }
func memFree(d *Device, ptr uintptr) error                                        { return ErrNoCUDA }
func hostAlloc(d *Device, bytes int64) (uintptr, error)                           { return 0, ErrNoCUDA }
func hostFree(d *Device, ptr uintptr) error                                       { return ErrNoCUDA }
func hostRegister(d *Device, ptr uintptr, bytes int64) error                      { return ErrNoCUDA }
func hostUnregister(d *Device, ptr uintptr) error                                 { return ErrNoCUDA }
func managedAlloc(d *Device, bytes int64) (uintptr, error)                        { return 0, ErrNoCUDA }
func prefetch(s *Stream, ptr uintptr, bytes int64, device int) error              { return ErrNoCUDA }
func advise(d *Device, ptr uintptr, bytes int64, a Advice, device int) error      { return ErrNoCUDA }
func mapGranule(d *Device) (int64, error)                                         { return 0, ErrNoCUDA }
func poolCreate(d *Device, threshold uint64) (handle, error)                      { return 0, ErrNoCUDA }
func poolDestroy(d *Device, pool handle) error                                    { return ErrNoCUDA }
func poolThreshold(d *Device, pool handle, bytes uint64) error                    { return ErrNoCUDA }
func poolTrim(d *Device, pool handle, keep int64) error                           { return ErrNoCUDA }
func poolUsage(d *Device, of handle) (pool.Usage, error)                          { return pool.Usage{}, ErrNoCUDA }
func poolAccess(d *Device, pool handle, device int) error                         { return ErrNoCUDA }
func poolCurrent(d *Device) (handle, error)                                       { return 0, ErrNoCUDA }
func poolAlloc(d *Device, pool, stream handle, bytes int64) (uintptr, error)      { return 0, ErrNoCUDA }
func poolFree(d *Device, stream handle, ptr uintptr) error                        { return ErrNoCUDA }
func streamCreate(d *Device) (handle, error)                                      { return 0, ErrNoCUDA }
func streamDestroy(s *Stream) error                                               { return ErrNoCUDA }
func streamIdle(s *Stream) (bool, error)                                          { return false, ErrNoCUDA }
func streamSync(s *Stream) error                                                  { return ErrNoCUDA }
func streamWait(s *Stream, e handle) error                                        { return ErrNoCUDA }
func streamCapturing(s *Stream) (bool, error)                                     { return false, ErrNoCUDA }
func captureBegin(s *Stream) error                                                { return ErrNoCUDA }
func captureEnd(s *Stream) (handle, error)                                        { return 0, ErrNoCUDA }
func graphInstantiate(d *Device, graph handle) (handle, error)                    { return 0, ErrNoCUDA }
func graphFree(d *Device, graph handle) error                                     { return ErrNoCUDA }
func canUsePageable(n int) bool                                                   { return false }
func graphLaunch(s *Stream, exec handle) error                                    { return ErrNoCUDA }
func graphDestroy(d *Device, exec handle) error                                   { return ErrNoCUDA }
func eventCreate(d *Device, timing bool) (handle, error)                          { return 0, ErrNoCUDA }
func eventDestroy(d *Device, e handle) error                                      { return ErrNoCUDA }
func eventRecord(s *Stream, e handle) error                                       { return ErrNoCUDA }
func eventDone(d *Device, e handle) (bool, error)                                 { return false, ErrNoCUDA }
func eventSync(d *Device, e handle) error                                         { return ErrNoCUDA }
func eventElapsed(d *Device, from, to handle) (float64, error)                    { return 0, ErrNoCUDA }
func moduleLoad(d *Device, image string) (handle, error)                          { return 0, ErrNoCUDA }
func moduleUnload(d *Device, m handle) error                                      { return ErrNoCUDA }
func moduleFunction(d *Device, m handle, name string) (handle, error)             { return 0, ErrNoCUDA }
func launch(s *Stream, fn handle, grid, block Dim, shared int, args []byte) error { return ErrNoCUDA }
func copyAsync(s *Stream, dst, src uintptr, bytes int64) error                    { return ErrNoCUDA }
func upload(s *Stream, dst uintptr, src unsafe.Pointer, bytes int64) (bool, error) {
	return false, ErrNoCUDA
}
func download(s *Stream, dst unsafe.Pointer, src uintptr, bytes int64) error { return ErrNoCUDA }
func copyPeer(s *Stream, dst uintptr, to int, src uintptr, from int, bytes int64) error {
	return ErrNoCUDA
}
func canPeer(n, peer int) (bool, error)                              { return false, ErrNoCUDA }
func enablePeer(d *Device, peer int) error                           { return ErrNoCUDA }
func fill(s *Stream, dst uintptr, pattern []byte, count int64) error { return ErrNoCUDA }

func nvtxLoad() bool          { return false }
func nvtxStart(string) uint64 { return 0 }
func nvtxEnd(uint64)          {}
func nvtxMark(string)         {}

func calls() []CallCount                                                  { return nil }
func addressReserve(d *Device, bytes int64) (uintptr, error)              { return 0, ErrNoCUDA }
func addressFree(d *Device, addr uintptr, bytes int64) error              { return ErrNoCUDA }
func chunksCreate(d *Device, bytes int64, memory []chunk) error           { return ErrNoCUDA }
func chunksRelease(d *Device, memory []chunk) error                       { return ErrNoCUDA }
func mapAccess(d *Device, addr uintptr, bytes int64, users []int32) error { return ErrNoCUDA }
func unmapChunks(d *Device, addr uintptr, bytes int64) error              { return ErrNoCUDA }
func mapChunks(d *Device, addr uintptr, bytes int64, memory []chunk, users []int32) error {
	return ErrNoCUDA
}
