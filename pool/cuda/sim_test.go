//go:build cudasim

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/pool"
)

// driverPiece is 0, because the simulated driver takes no more for its own pool than that hands out.
const driverPiece = 0

// The simulated driver: devices whose memory is the host's. It is as strict as CUDA's
// documentation. Work runs when the schedule says, in the order that streams and events demand and
// in no other. No call waits that is not documented to wait. Work that touches memory that was given
// back, or that its device cannot use, breaks the device, and so does a handle that was destroyed.
// New memory is scribbled on, and memory that was freed is handed out again first.
// It counts what each memory takes, and calls. It knows the kernels of the tests by name.
// The tests of this package run on it with -tags cudasim, on a machine without a GPU.
var sim = newSimulation()

type simulation struct {
	mu       sync.Mutex
	schedule schedule
	random   *rand.Rand // of the schedule byChance
	devices  []*simDevice
	regions  []*simRegion // few: a search is cheap
	objects  map[handle]any
	last     handle
	calls    map[string]int64
	peers    bool   // the devices can use each other's memory
	failing  string // the call of the driver that fails
	chunks   map[chunk]*simChunk
	memory   *os.File // where chunks lie, so that one can be at two addresses
	end      int64    // of the file
	empty    map[int64][]int64
}

// A schedule says when work runs.
type schedule int

const (
	byClock  schedule = iota // as soon as it can; spin takes its time
	atOnce                   // as soon as it can
	atLast                   // when somebody waits for it
	byChance                 // some of it at each call
)

type simDevice struct {
	total, used int64
	null        *simStream
	streams     []*simStream // those destroyed, too, until they have no work
	pool        handle       // the current one
	pools       []handle     // all
	broken      error
	enabled     map[int]bool
	opened      int
}

// A simRegion is memory that the driver knows.
type simRegion struct {
	addr       uintptr
	bytes      int64
	kind       string // device, pinned, managed, registered, mapped
	device     int
	users      map[int]bool // of mapped memory
	pool       *simPool
	live       bool // of a pool: allocated, in the order of streams
	readMostly bool
	preferred  int
	data       []byte
}

type simChunk struct {
	device   int
	at, size int64
	mapped   int
	written  bool
	released bool
}

type simPool struct {
	device    int
	threshold uint64
	usage     pool.Usage
	free      []simFreed
	destroyed bool
}

// simFreed is memory that a stream has freed, once it has done that work.
type simFreed struct {
	*simRegion
	stream *simStream
	done   *simMark
}

const simTotal = 16 << 30

func newSimulation() *simulation {
	s := &simulation{objects: map[handle]any{}, calls: map[string]int64{}, peers: true, chunks: map[chunk]*simChunk{}, empty: map[int64][]int64{}}
	for n := range 2 {
		d := &simDevice{total: simTotal, used: 400 << 20, null: &simStream{device: n}, enabled: map[int]bool{}}
		d.streams = []*simStream{d.null}
		d.pool = s.add(&simPool{device: n})
		d.pools = []handle{d.pool}
		s.devices = append(s.devices, d)
	}
	f, err := os.CreateTemp("/dev/shm", "cudasim")
	if err != nil {
		panic(err)
	}
	os.Remove(f.Name())
	s.memory = f
	return s
}

func (s *simulation) locked() (unlock func()) { s.mu.Lock(); return s.mu.Unlock }

// scheduled has work run when the schedule says.
func (s *simulation) scheduled(how schedule, seed uint64) {
	defer s.locked()()
	s.schedule, s.random, s.peers = how, rand.New(rand.NewPCG(seed, 1)), seed%4 != 3
}

// mend brings back the schedule by the clock, and devices that work has broken.
func (s *simulation) mend() {
	defer s.locked()()
	s.schedule, s.peers = byClock, true
	for _, d := range s.devices {
		d.broken = nil
	}
}

func (s *simulation) add(object any) handle {
	s.last += 16
	s.objects[s.last] = object
	return s.last
}

// called counts a call, and lets work run. The caller holds no lock.
func (s *simulation) called(name string) {
	defer s.locked()()
	s.calls[name]++
	s.progress()
}

// made answers a call, which may fail, with the handle of an object.
func made(call string, device int, object func(*simDevice) any) (handle, error) {
	if err := sim.asked(call, device); err != nil {
		return 0, err
	}
	defer sim.locked()()
	return sim.add(object(sim.devices[device])), nil
}

// asked counts a call, which may fail.
func (s *simulation) asked(name string, device int) error {
	s.called(name)
	defer s.locked()()
	if s.failing == name {
		return simError(name, device, 999, "CUDA_ERROR_UNKNOWN")
	}
	return nil
}

// simObject returns the object of a handle. One that was destroyed breaks the device, and
// a new object stands for it.
func simObject[T any](device int, h handle) *T {
	defer sim.locked()()
	x, is := sim.objects[h].(*T)
	if !is {
		sim.devices[device].broken = simError("call with a handle that was destroyed", device, 400, "CUDA_ERROR_INVALID_HANDLE")
		return new(T)
	}
	return x
}

func simRemove(h handle) {
	defer sim.locked()()
	delete(sim.objects, h)
}

func simError(call string, device, code int, name string) error {
	return &Error{Call: call, Device: device, Code: code, Name: name}
}

func outOfMemory(call string, device int) error {
	return simError(call, device, codeOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY")
}

// A simStream does its work one after the other.
type simStream struct {
	device    int
	queue     []*simWork
	busyUntil time.Time // of the spin that it does
	capture   *simCapture
	destroyed bool
}

type simWork struct {
	run   func()
	after *simMark // not before that
	spin  time.Duration
	graph *simGraph // that it is of
}

// A simMark is a place in the work of a stream.
type simMark struct {
	on   *simStream
	done bool
}

type simCapture struct {
	work    []*simWork
	invalid error
}

// A simGraph is one that can be launched.
type simGraph struct {
	work      []*simWork
	last      *simMark // of the last launch
	destroyed bool
}

// A simEvent is at its last record.
type simEvent struct {
	device int
	*simMark
}

func simStreamOf(d *Device, h handle) *simStream {
	if h == 0 {
		return sim.devices[d.index].null
	}
	return simObject[simStream](d.index, h)
}

// do queues work on a stream, or records it.
func do(d *Device, h handle, w *simWork) error {
	s := simStreamOf(d, h)
	defer sim.locked()()
	return s.take(w)
}

// queue is do for a call, which may fail.
func queue(s *Stream, call string, w *simWork) error {
	if err := sim.asked(call, s.dev.index); err != nil {
		return err
	}
	return do(s.dev, s.h, w)
}

// take is do for a caller that holds the lock.
func (s *simStream) take(w *simWork) error {
	switch {
	case s.capture == nil:
		s.queue = append(s.queue, w)
		sim.progress()
	case w.after != nil || w.graph != nil || w.run == nil:
		return s.refuse()
	default:
		s.capture.work = append(s.capture.work, w)
	}
	return nil
}

// refuse invalidates the capture of a stream, which was asked what it cannot do then. The caller
// holds the lock.
func (s *simStream) refuse() error {
	s.capture.invalid = simError("call for a stream that captures", s.device, 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
	return s.capture.invalid
}

// step does the first work of the stream, if it can be done. The caller holds the lock.
func (s *simStream) step() bool {
	if len(s.queue) == 0 || s.queue[0].after != nil && !s.queue[0].after.done {
		return false
	}
	w := s.queue[0]
	if w.spin > 0 && sim.schedule == byClock {
		if s.busyUntil.IsZero() {
			s.busyUntil = time.Now().Add(w.spin)
		}
		if time.Now().Before(s.busyUntil) {
			return false
		}
		s.busyUntil = time.Time{}
	}
	s.queue = s.queue[1:]
	if w.graph != nil && w.graph.destroyed {
		sim.devices[s.device].broken = simError("work of a graph that was destroyed", s.device, 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
	}
	if w.run != nil {
		w.run()
	}
	return true
}

// progress runs work as the schedule says. The caller holds the lock.
func (s *simulation) progress() {
	var all []*simStream
	for _, d := range s.devices {
		d.streams = slices.DeleteFunc(d.streams, func(x *simStream) bool { return x.destroyed && len(x.queue) == 0 })
		all = append(all, d.streams...)
	}
	switch s.schedule {
	case byClock, atOnce:
		for more := true; more; {
			more = false
			for _, x := range all {
				for x.step() {
					more = true
				}
			}
		}
	case byChance:
		for range s.random.IntN(4) {
			all[s.random.IntN(len(all))].step()
		}
	}
}

// until runs work of a stream, and what that waits for, until done or all of it has ended. The
// caller holds the lock.
func (s *simulation) until(x *simStream, done *bool) {
	for len(x.queue) > 0 && (done == nil || !*done) {
		if s.progress(); s.schedule == byClock {
			s.mu.Unlock()
			time.Sleep(20 * time.Microsecond)
			s.mu.Lock()
			continue
		}
		if len(x.queue) == 0 || x.step() {
			continue
		}
		after := x.queue[0].after
		s.until(after.on, &after.done)
	}
}

func (s *simulation) broken(device int) error {
	defer s.locked()()
	return s.devices[device].broken
}

// mapMemory returns memory of the host that takes nothing until it is touched.
func mapMemory(bytes int64, prot int) ([]byte, error) {
	return syscall.Mmap(-1, 0, int(bytes), prot, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
}

// bytesAt is the memory at an address outside the Go heap.
func bytesAt(addr uintptr, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), addr)), n)
}

// scribble writes to both ends of new memory.
func scribble(b []byte) {
	for k := range min(len(b), 4096) {
		b[k], b[len(b)-1-k] = 0xdb, 0xdb
	}
}

// allocate makes a region; device memory counts as used. The caller holds no lock.
func (s *simulation) allocate(call, kind string, device int, bytes int64) (*simRegion, error) {
	if err := s.asked(call, device); err != nil {
		return nil, err
	}
	defer s.locked()()
	if kind == "device" && s.devices[device].used+bytes > s.devices[device].total {
		return nil, outOfMemory(call, device)
	}
	data, err := mapMemory((bytes+4095)&^4095, syscall.PROT_READ|syscall.PROT_WRITE)
	if err != nil {
		return nil, outOfMemory(call, device)
	}
	if kind == "device" {
		s.devices[device].used += bytes
	}
	scribble(data)
	r := &simRegion{addr: uintptr(unsafe.Pointer(&data[0])), bytes: bytes, kind: kind, device: device, data: data}
	s.regions = append(s.regions, r)
	return r, nil
}

func (s *simulation) find(addr uintptr) *simRegion {
	for _, r := range s.regions {
		if addr >= r.addr && addr < r.addr+uintptr(r.bytes) {
			return r
		}
	}
	return nil
}

// release gives the region at addr back, and does not wait.
func (s *simulation) release(call string, device int, addr uintptr) error {
	defer s.locked()()
	s.calls[call]++
	return s.drop(call, device, addr)
}

// drop is release for a caller that holds the lock.
func (s *simulation) drop(call string, device int, addr uintptr) error {
	for k, r := range s.regions {
		if r.addr == addr {
			s.regions = append(s.regions[:k:k], s.regions[k+1:]...)
			if r.kind == "device" {
				s.devices[r.device].used -= r.bytes
			}
			if r.data != nil {
				return syscall.Munmap(r.data)
			}
			return nil
		}
	}
	return simError(call, device, 1, "CUDA_ERROR_INVALID_VALUE")
}

// reach returns memory that work of a device touches. What it cannot use breaks it. The caller
// holds the lock, as all work does.
func (s *simulation) reach(device int, addr uintptr, bytes int64, byKernel bool) []byte {
	for at := addr; at < addr+uintptr(bytes); {
		r := s.find(at)
		if r == nil || r.pool != nil && !r.live || (byKernel || r.pool != nil || r.kind == "mapped") && !s.mayUse(device, r) {
			s.devices[device].broken = simError("work", device, 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
			return nil
		}
		at = r.addr + uintptr(r.bytes)
	}
	return bytesAt(addr, int(bytes))
}

func (s *simulation) mayUse(device int, r *simRegion) bool {
	switch {
	case r.kind == "pinned", r.kind == "managed", r.kind == "registered", r.device == device:
		return true
	case r.kind == "mapped":
		return r.users[device]
	case r.pool != nil:
		return false
	}
	return s.devices[device].enabled[r.device]
}

func simWords(b []byte) []uint32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// simKernels do what the kernels of that name do, with their packed arguments.
var simKernels = map[string]func(device int, block Dim, shared int, a []byte){
	"spin": func(int, Dim, int, []byte) {}, // see launch
	"mix": func(device int, block Dim, shared int, a []byte) {
		n := int(block.X)
		to, from := simWords(sim.reach(device, uintptr(simArg(a, 0)), int64(4*n), true)), simWords(sim.reach(device, uintptr(simArg(a, 8)), int64(4*n), true))
		if shared < 4*n {
			sim.devices[device].broken = simError("work beyond its shared memory", device, 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
		}
		scratch := slices.Clone(from)
		for i := range min(len(to), len(from)) {
			to[i] = scratch[n-1-i]*5 + uint32(simArg(a, 16))
		}
	},
}

func simArg(a []byte, at int) uint64 {
	var b [8]byte
	copy(b[:], a[at:])
	return binary.NativeEndian.Uint64(b[:])
}

// What package cuda asks of the driver.

func start() error                            { return nil }
func countDevices() (int, error)              { return len(sim.devices), nil }
func deviceName(n int) (string, error)        { return "simulated", nil }
func canPeer(n, peer int) (bool, error)       { return sim.peers, nil }
func eventDestroy(d *Device, e handle) error  { simRemove(e); return nil }
func graphFree(d *Device, graph handle) error { simRemove(graph); return nil }

func retainContext(n int) (handle, error) {
	defer sim.locked()()
	sim.devices[n].opened++
	return handle(n + 1), nil
}

// releaseContext destroys the events of the device, if nobody else has opened it.
func releaseContext(n int) error {
	defer sim.locked()()
	if sim.devices[n].opened--; sim.devices[n].opened == 0 {
		maps.DeleteFunc(sim.objects, func(_ handle, x any) bool { e, is := x.(*simEvent); return is && e.device == n })
	}
	return nil
}

func enablePeer(d *Device, peer int) error {
	defer sim.locked()()
	sim.devices[d.index].enabled[peer] = true
	return nil
}

func memInfo(d *Device) (free, total int64, err error) {
	if err := sim.asked("cuMemGetInfo", d.index); err != nil {
		return 0, 0, err
	}
	defer sim.locked()()
	x := sim.devices[d.index]
	return x.total - x.used, x.total, nil
}

func syncContext(d *Device) error {
	if err := sim.asked("cuCtxSynchronize", d.index); err != nil {
		return err
	}
	sim.mu.Lock()
	x := sim.devices[d.index]
	for _, s := range x.streams {
		if s.capture != nil {
			defer sim.mu.Unlock()
			return s.refuse()
		}
	}
	for _, s := range slices.Clone(x.streams) {
		sim.until(s, nil)
	}
	x.streams = slices.DeleteFunc(x.streams, func(s *simStream) bool { return s.destroyed && len(s.queue) == 0 })
	sim.mu.Unlock()
	return errors.Join(sim.broken(d.index), trimPools(d))
}

func calls() (all []CallCount) {
	defer sim.locked()()
	for name, n := range sim.calls {
		all = append(all, CallCount{Name: name, Calls: n, Time: time.Duration(n)})
	}
	return all
}

func simAddr(r *simRegion, err error) (uintptr, error) {
	if err != nil {
		return 0, err
	}
	return r.addr, nil
}

func memAlloc(d *Device, bytes int64) (uintptr, error) {
	return simAddr(sim.allocate("cuMemAlloc", "device", d.index, bytes))
}
func hostAlloc(d *Device, bytes int64) (uintptr, error) {
	return simAddr(sim.allocate("cuMemHostAlloc", "pinned", d.index, bytes))
}
func managedAlloc(d *Device, bytes int64) (uintptr, error) {
	return simAddr(sim.allocate("cuMemAllocManaged", "managed", d.index, bytes))
}
func memFree(d *Device, addr uintptr) error  { return sim.release("cuMemFree", d.index, addr) }
func hostFree(d *Device, addr uintptr) error { return sim.release("cuMemFreeHost", d.index, addr) }

func hostRegister(d *Device, addr uintptr, bytes int64) error {
	if err := sim.asked("cuMemHostRegister", d.index); err != nil {
		return err
	}
	defer sim.locked()()
	if sim.find(addr) != nil {
		return simError("cuMemHostRegister", d.index, 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED")
	}
	sim.regions = append(sim.regions, &simRegion{addr: addr, bytes: bytes, kind: "registered", device: d.index})
	return nil
}
func hostUnregister(d *Device, addr uintptr) error {
	return sim.release("cuMemHostUnregister", d.index, addr)
}

func prefetch(s *Stream, addr uintptr, bytes int64, device int) error {
	return queue(s, "cuMemPrefetchAsync", &simWork{})
}

// advise holds what CUmem_advise says of a range: 1 sets what 2 unsets, 3 prefers a device.
func advise(d *Device, addr uintptr, bytes int64, a Advice, device int) error {
	if err := sim.asked("cuMemAdvise", d.index); err != nil {
		return err
	}
	defer sim.locked()()
	r := sim.find(addr)
	if r == nil || r.kind != "managed" || a < 1 || a > 3 {
		return simError("cuMemAdvise", d.index, 1, "CUDA_ERROR_INVALID_VALUE")
	}
	if a == 3 {
		r.preferred = device
	} else {
		r.readMostly = a == 1
	}
	return nil
}

const simGranule = 1 << 20 // small, so that the pools of TestPrograms map memory

func mapGranule(d *Device) (int64, error) { return simGranule, nil }

func addressReserve(d *Device, bytes int64) (uintptr, error) {
	sim.called("cuMemAddressReserve")
	data, err := mapMemory(bytes, syscall.PROT_NONE)
	if err != nil {
		return 0, outOfMemory("cuMemAddressReserve", d.index)
	}
	return uintptr(unsafe.Pointer(&data[0])), nil
}

func addressFree(d *Device, addr uintptr, bytes int64) error {
	return syscall.Munmap(bytesAt(addr, int(bytes)))
}

func chunksCreate(d *Device, bytes int64, memory []chunk) error {
	defer sim.locked()()
	sim.calls["cuMemCreate"]++
	x := sim.devices[d.index]
	if x.used+bytes*int64(len(memory)) > x.total {
		return outOfMemory("cuMemCreate", d.index)
	}
	x.used += bytes * int64(len(memory))
	for k := range memory {
		c := &simChunk{device: d.index, size: bytes}
		if old := sim.empty[bytes]; len(old) > 0 {
			c.at, sim.empty[bytes] = old[len(old)-1], old[:len(old)-1]
		} else {
			c.at = sim.end
			sim.end += bytes
			if err := sim.memory.Truncate(sim.end); err != nil {
				return err
			}
		}
		sim.last += 16
		memory[k] = chunk(sim.last)
		sim.chunks[memory[k]] = c
	}
	return nil
}

// forget gives the memory of a chunk back once nothing maps it.
func (s *simulation) forget(c *simChunk) {
	if c.released && c.mapped == 0 {
		s.devices[c.device].used -= c.size
		s.empty[c.size] = append(s.empty[c.size], c.at)
	}
}

func chunksRelease(d *Device, memory []chunk) error {
	defer sim.locked()()
	for _, h := range memory {
		c := sim.chunks[h]
		c.released = true
		sim.forget(c)
	}
	return nil
}

func simMmap(addr uintptr, bytes int64, prot, flags, fd int, at int64) error {
	if _, _, e := syscall.Syscall6(syscall.SYS_MMAP, addr, uintptr(bytes), uintptr(prot), uintptr(flags|syscall.MAP_FIXED), uintptr(fd), uintptr(at)); e != 0 {
		return fmt.Errorf("mmap: %w", e)
	}
	return nil
}

func mapChunks(d *Device, addr uintptr, bytes int64, memory []chunk, users []int32) error {
	defer sim.locked()()
	sim.calls["cuMemMap"]++
	for k, h := range memory {
		c, at := sim.chunks[h], addr+uintptr(int64(k)*bytes)
		if err := simMmap(at, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED, int(sim.memory.Fd()), c.at); err != nil {
			return err
		}
		if c.mapped++; !c.written {
			c.written = true
			scribble(bytesAt(at, int(bytes)))
		}
		r := &simRegion{addr: at, bytes: bytes, kind: "mapped", device: d.index, users: map[int]bool{}}
		for _, n := range users {
			r.users[int(n)] = true
		}
		sim.regions = append(sim.regions, r)
		sim.objects[handle(at)] = c
	}
	return nil
}

func mapAccess(d *Device, addr uintptr, bytes int64, users []int32) error {
	defer sim.locked()()
	for _, r := range sim.regions {
		if r.addr >= addr && r.addr < addr+uintptr(bytes) {
			r.users[int(users[0])] = true
		}
	}
	return nil
}

func unmapChunks(d *Device, addr uintptr, bytes int64) error {
	defer sim.locked()()
	sim.calls["cuMemUnmap"]++
	kept := sim.regions[:0:0]
	for _, r := range sim.regions {
		if r.kind != "mapped" || r.addr < addr || r.addr >= addr+uintptr(bytes) {
			kept = append(kept, r)
			continue
		}
		c := sim.objects[handle(r.addr)].(*simChunk)
		c.mapped--
		sim.forget(c)
		delete(sim.objects, handle(r.addr))
	}
	sim.regions = kept
	return simMmap(addr, bytes, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE, -1, 0)
}

func poolCreate(d *Device, threshold uint64) (handle, error) {
	if err := sim.asked("cuMemPoolCreate", d.index); err != nil {
		return 0, err
	}
	defer sim.locked()()
	x := sim.devices[d.index]
	x.pools = append(x.pools, sim.add(&simPool{device: d.index, threshold: threshold}))
	return x.pools[len(x.pools)-1], nil
}
func poolCurrent(d *Device) (handle, error) { return sim.devices[d.index].pool, nil }
func poolDestroy(d *Device, h handle) error {
	p := simObject[simPool](d.index, h)
	p.destroyed, p.threshold = true, 0
	return poolTrim(d, h, 0)
}

func poolThreshold(d *Device, h handle, bytes uint64) error {
	simObject[simPool](d.index, h).threshold = bytes
	return nil
}

func poolTrim(d *Device, h handle, keep int64) error {
	p := simObject[simPool](d.index, h)
	defer sim.locked()()
	return p.trim(keep)
}

// trim gives free memory back. The caller holds the lock.
func (p *simPool) trim(keep int64) (err error) {
	p.free = slices.DeleteFunc(p.free, func(f simFreed) bool {
		gone := f.done.done && p.usage.Reserved > keep
		if gone {
			p.usage.Reserved -= f.bytes
			err = errors.Join(err, sim.drop("cuMemPoolTrimTo", p.device, f.addr))
		}
		return gone
	})
	return err
}

func poolUsage(d *Device, h handle) (pool.Usage, error) {
	p := simObject[simPool](d.index, h)
	defer sim.locked()()
	return p.usage, nil
}

func poolAlloc(d *Device, h, stream handle, bytes int64) (uintptr, error) {
	p := simObject[simPool](d.index, h)
	s := simStreamOf(d, stream)
	sim.mu.Lock()
	var r *simRegion
	if k := slices.IndexFunc(p.free, func(f simFreed) bool { return f.bytes == bytes && (f.stream == s || f.done.done) }); k >= 0 {
		r = p.free[k].simRegion
		p.free = slices.Delete(p.free, k, k+1)
	}
	sim.mu.Unlock()
	fresh := r == nil
	if fresh {
		var err error
		if r, err = sim.allocate("cuMemAllocFromPoolAsync", "device", p.device, bytes); err != nil {
			return 0, err
		}
	}
	sim.mu.Lock()
	if fresh {
		r.pool = p
		p.usage.Reserved += bytes
		p.usage.ReservedPeak = max(p.usage.ReservedPeak, p.usage.Reserved)
	}
	p.usage.Used += bytes
	p.usage.UsedPeak = max(p.usage.UsedPeak, p.usage.Used)
	sim.mu.Unlock()
	return r.addr, do(d, stream, &simWork{run: func() { r.live = true }, graph: notForGraphs})
}

// notForGraphs is of work that cannot be captured.
var notForGraphs = &simGraph{}

func poolFree(d *Device, stream handle, addr uintptr) error {
	s := simStreamOf(d, stream)
	defer sim.locked()()
	r, done := sim.find(addr), &simMark{on: s}
	r.pool.free = append(r.pool.free, simFreed{r, s, done})
	return s.take(&simWork{graph: notForGraphs, run: func() {
		r.live, done.done = false, true
		r.pool.usage.Used -= r.bytes
		scribble(bytesAt(r.addr, int(r.bytes)))
	}})
}

// trimPools gives back what the pools of a device hold above their thresholds.
func trimPools(d *Device) (err error) {
	defer sim.locked()()
	x := sim.devices[d.index]
	x.pools = slices.DeleteFunc(x.pools, func(h handle) bool {
		p := sim.objects[h].(*simPool)
		if uint64(p.usage.Reserved) > p.threshold {
			err = errors.Join(err, p.trim(int64(p.threshold)))
		}
		gone := p.destroyed && p.usage.Reserved == 0
		if gone {
			delete(sim.objects, h)
		}
		return gone
	})
	return err
}

func streamCreate(d *Device) (handle, error) {
	return made("cuStreamCreate", d.index, func(x *simDevice) any {
		s := &simStream{device: d.index}
		x.streams = append(x.streams, s)
		return s
	})
}

// streamDestroy returns at once. The work of the stream goes on.
func streamDestroy(s *Stream) error {
	simStreamOf(s.dev, s.h).destroyed = true
	simRemove(s.h)
	return nil
}

func streamIdle(s *Stream) (bool, error) {
	if err := sim.asked("cuStreamQuery", s.dev.index); err != nil {
		return false, err
	}
	x := simStreamOf(s.dev, s.h)
	sim.mu.Lock()
	if x.capture != nil {
		defer sim.mu.Unlock()
		return false, x.refuse()
	}
	idle := len(x.queue) == 0
	sim.mu.Unlock()
	if idle {
		return true, errors.Join(sim.broken(s.dev.index), trimPools(s.dev))
	}
	return false, nil
}

func streamSync(s *Stream) error {
	if err := sim.asked("cuStreamSynchronize", s.dev.index); err != nil {
		return err
	}
	x := simStreamOf(s.dev, s.h)
	sim.mu.Lock()
	if x.capture != nil {
		defer sim.mu.Unlock()
		return x.refuse()
	}
	sim.until(x, nil)
	sim.mu.Unlock()
	return errors.Join(sim.broken(s.dev.index), trimPools(s.dev))
}

func streamWait(s *Stream, e handle) error {
	if err := sim.asked("cuStreamWaitEvent", s.dev.index); err != nil {
		return err
	}
	x := simObject[simEvent](s.dev.index, e)
	if x.simMark == nil {
		return nil
	}
	return do(s.dev, s.h, &simWork{after: x.simMark})
}

func captureBegin(s *Stream) error {
	if err := sim.asked("cuStreamBeginCapture", s.dev.index); err != nil {
		return err
	}
	x := simStreamOf(s.dev, s.h)
	if x == sim.devices[s.dev.index].null {
		return simError("cuStreamBeginCapture", s.dev.index, 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
	}
	defer sim.locked()()
	x.capture = &simCapture{}
	return nil
}

func captureEnd(s *Stream) (handle, error) {
	failed := sim.asked("cuStreamEndCapture", s.dev.index)
	x := simStreamOf(s.dev, s.h)
	defer sim.locked()()
	c := x.capture
	x.capture = nil
	if failed = errors.Join(c.invalid, failed); failed != nil {
		return 0, failed
	}
	return sim.add(c), nil
}

func graphInstantiate(d *Device, graph handle) (handle, error) {
	if err := sim.asked("cuGraphInstantiate", d.index); err != nil {
		return 0, err
	}
	c := simObject[simCapture](d.index, graph)
	defer sim.locked()()
	return sim.add(&simGraph{work: c.work}), nil
}

// graphLaunch queues the work behind that of the last launch.
func graphLaunch(s *Stream, exec handle) error {
	if err := sim.asked("cuGraphLaunch", s.dev.index); err != nil {
		return err
	}
	g := simObject[simGraph](s.dev.index, exec)
	work := []*simWork{{after: g.last, graph: g}}
	for _, w := range g.work {
		work = append(work, &simWork{run: w.run, spin: w.spin, graph: g})
	}
	last, err := &simMark{on: simStreamOf(s.dev, s.h)}, error(nil)
	g.last = last
	for _, w := range append(work, &simWork{run: func() { last.done = true }, graph: g}) {
		err = errors.Join(err, do(s.dev, s.h, w))
	}
	return err
}

func graphDestroy(d *Device, exec handle) error {
	simObject[simGraph](d.index, exec).destroyed = true
	simRemove(exec)
	return nil
}

func eventCreate(d *Device) (handle, error) {
	return made("cuEventCreate", d.index, func(*simDevice) any { return &simEvent{device: d.index} })
}

func eventRecord(s *Stream, e handle) error {
	if err := sim.asked("cuEventRecord", s.dev.index); err != nil {
		return err
	}
	x := simObject[simEvent](s.dev.index, e)
	on := simStreamOf(s.dev, s.h)
	mark := &simMark{on: on}
	x.simMark = mark
	return do(s.dev, s.h, &simWork{run: func() { mark.done = true }, graph: notForGraphs})
}

func eventDone(d *Device, e handle) (bool, error) {
	sim.called("cuEventQuery")
	x := simObject[simEvent](d.index, e)
	return x.simMark == nil || x.done, sim.broken(d.index)
}

func eventSync(d *Device, e handle) error {
	sim.called("cuEventSynchronize")
	x := simObject[simEvent](d.index, e)
	if x.simMark == nil {
		return nil
	}
	sim.mu.Lock()
	sim.until(x.on, &x.done)
	sim.mu.Unlock()
	return sim.broken(d.index)
}

func moduleLoad(d *Device, image string) (handle, error) {
	if err := sim.asked("cuModuleLoadData", d.index); err != nil {
		return 0, err
	}
	if !strings.Contains(image, ".entry") {
		return 0, simError("cuModuleLoadData", d.index, 218, "CUDA_ERROR_INVALID_PTX")
	}
	defer sim.locked()()
	return sim.add(&image), nil
}

func moduleUnload(d *Device, m handle) error {
	defer sim.locked()()
	delete(sim.objects, m)
	for h, x := range sim.objects {
		if f, is := x.(*simFunction); is && f.module == m {
			delete(sim.objects, h)
		}
	}
	return nil
}

func moduleFunction(d *Device, m handle, name string) (handle, error) {
	if _, known := simKernels[name]; !known || !strings.Contains(*simObject[string](d.index, m), name) {
		return 0, simError("cuModuleGetFunction", d.index, 500, "CUDA_ERROR_NOT_FOUND")
	}
	defer sim.locked()()
	return sim.add(&simFunction{name, m}), nil
}

// A simFunction is a kernel of a module.
type simFunction struct {
	name   string
	module handle
}

func launch(s *Stream, fn handle, grid, block Dim, shared int, args []byte) error {
	f := simObject[simFunction](s.dev.index, fn)
	packed, device := slices.Clone(args), s.dev.index
	w := &simWork{run: func() {
		if sim.objects[f.module] == nil {
			sim.devices[device].broken = simError("kernel of a module that was unloaded", device, 400, "CUDA_ERROR_INVALID_HANDLE")
			return
		}
		simKernels[f.name](device, block, shared, packed)
	}}
	if f.name == "spin" {
		w.spin = time.Duration(simArg(args, 0))
	}
	return queue(s, "cuLaunchKernel", w)
}

// moves queues a copy between memory that devices use. Pieces that overlap are spoiled.
func moves(call string, s *Stream, dst uintptr, to int, src uintptr, from int, bytes int64) error {
	return queue(s, call, &simWork{run: func() {
		there := sim.reach(from, src, bytes, false)
		if to != from && !sim.peers { // by way of the host
			there = slices.Clone(there)
		}
		here := sim.reach(to, dst, bytes, false)
		if copy(here, there); dst != src && overlap(dst, src, bytes) {
			scribble(here)
		}
	}})
}

func copyAsync(s *Stream, dst, src uintptr, bytes int64) error {
	return moves("cuMemcpyAsync", s, dst, s.dev.index, src, s.dev.index, bytes)
}

func copyPeer(s *Stream, dst uintptr, to int, src uintptr, from int, bytes int64) error {
	return moves("cuMemcpyPeerAsync", s, dst, to, src, from, bytes)
}

func upload(s *Stream, dst uintptr, src unsafe.Pointer, bytes int64) (bool, error) {
	from := unsafe.Slice((*byte)(src), bytes)
	sim.mu.Lock()
	pinned := sim.find(uintptr(src)) != nil
	sim.mu.Unlock()
	w := &simWork{}
	if !pinned {
		from, w.graph = slices.Clone(from), notForGraphs
	}
	device := s.dev.index
	w.run = func() { copy(sim.reach(device, dst, bytes, false), from) }
	return pinned, queue(s, "cuMemcpyHtoDAsync", w)
}

func download(s *Stream, dst unsafe.Pointer, src uintptr, bytes int64) error {
	device := s.dev.index
	return queue(s, "cuMemcpyDtoHAsync", &simWork{graph: notForGraphs, run: func() {
		copy(unsafe.Slice((*byte)(dst), bytes), sim.reach(device, src, bytes, false))
	}})
}

func fill(s *Stream, dst uintptr, pattern []byte, count int64) error {
	device, p := s.dev.index, slices.Clone(pattern)
	return queue(s, "cuMemsetAsync", &simWork{run: func() {
		b := sim.reach(device, dst, int64(len(p))*count, false)
		for n := copy(b, p); n > 0 && n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	}})
}

// held is how many pieces of memory the driver has handed out.
func held() int {
	defer sim.locked()()
	return len(sim.regions)
}

type testSchedule struct {
	name     string
	together int // programs that share pools
	set      func(testing.TB, uint64)
}

// schedules are those that the random programs run under, each in a world of its own.
func schedules() (all []testSchedule) {
	for name, how := range map[string]schedule{"at once": atOnce, "at last": atLast, "by chance": byChance} {
		var once sync.Once
		all = append(all, testSchedule{name, 1, func(t testing.TB, seed uint64) {
			once.Do(func() { t.Cleanup(sim.mend) })
			sim.scheduled(how, seed)
		}})
	}
	return all
}
