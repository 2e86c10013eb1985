//go:build cudasim

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/eagergc/eagergc/pool"
)

// The simulated driver: devices whose memory is the host's, with streams that run
// their work beside the program and in order. It counts what each memory takes, and a
// kernel that touches what its device cannot use breaks the device, as a real one does.
// The tests of this package run on it with -tags cudasim, on a machine without a GPU.
//
// It knows the kernels of the tests by name, copies take no time, and memory that a
// driver's pool has freed is handed out again only for the same size.
var sim = newSimulation()

type simulation struct {
	mu       sync.Mutex
	devices  []*simDevice
	regions  []*simRegion // few: a search is cheap
	objects  map[handle]any
	last     handle
	calls    map[string]int64
	peers    bool   // the devices can use each other's memory
	pageable bool   // ... and any memory of the host
	failing  string // the call of the driver that fails
	staged   int    // copies between devices that went through the host
	chunks   map[chunk]*simChunk
	memory   *os.File // where chunks lie, so that one can be at two addresses
	end      int64    // of the file
	empty    map[int64][]int64
}

type simDevice struct {
	total, used int64
	null        *simStream
	pool        handle // the current one
	broken      error
	enabled     map[int]bool
}

// A simRegion is memory that the driver knows.
type simRegion struct {
	addr   uintptr
	bytes  int64
	kind   string // device, pinned, managed, registered, mapped
	device int
	users  map[int]bool // of mapped memory
	pool   *simPool
	data   []byte
}

type simChunk struct {
	device   int
	at, size int64
	mapped   int
	released bool
}

type simPool struct {
	device    int
	threshold uint64
	usage     pool.Usage
	free      map[int64][]*simRegion
	access    map[int]bool
}

const simTotal = 16 << 30

func newSimulation() *simulation {
	s := &simulation{objects: map[handle]any{}, calls: map[string]int64{}, peers: true, chunks: map[chunk]*simChunk{}, empty: map[int64][]int64{}}
	for n := range 2 {
		d := &simDevice{total: simTotal, used: 400 << 20, null: newSimStream(n), enabled: map[int]bool{}}
		d.pool = s.add(&simPool{device: n, free: map[int64][]*simRegion{}, access: map[int]bool{}})
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

// without runs a test on a driver that lacks something.
func (s *simulation) without(t *testing.T, what *bool) {
	old := *what
	*what = false
	t.Cleanup(func() { *what = old })
}

func (s *simulation) add(object any) handle {
	s.last += 16
	s.objects[s.last] = object
	return s.last
}

func (s *simulation) called(name string) {
	s.mu.Lock()
	s.calls[name]++
	s.mu.Unlock()
}

// asked counts a call, which may fail.
func (s *simulation) asked(name string, device int) error {
	s.called(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == name {
		return simError(name, device, 999, "CUDA_ERROR_UNKNOWN")
	}
	return nil
}

func simObject[T any](h handle) T {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.objects[h].(T)
}

func simError(call string, device, code int, name string) error {
	return &Error{Call: call, Device: device, Code: code, Name: name}
}

func outOfMemory(call string, device int) error {
	return simError(call, device, codeOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY")
}

// A simStream does its work one after the other.
type simStream struct {
	device  int
	mu      sync.Mutex
	changed sync.Cond
	queue   []func()
	left    int // queued or running
	running bool
	record  *[]func() // a capture
}

func newSimStream(device int) *simStream {
	s := &simStream{device: device}
	s.changed.L = &s.mu
	return s
}

func simStreamOf(d *Device, h handle) *simStream {
	if h == 0 {
		return sim.devices[d.index].null
	}
	return simObject[*simStream](h)
}

func (s *simStream) do(work func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record != nil {
		*s.record = append(*s.record, work)
		return
	}
	s.queue = append(s.queue, work)
	s.left++
	if !s.running {
		s.running = true
		go s.run()
	}
}

func (s *simStream) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		work := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		work()
		s.mu.Lock()
		s.left--
		s.changed.Broadcast()
	}
	s.running = false
}

func (s *simStream) wait() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.left > 0 {
		s.changed.Wait()
	}
	return simBroken(s.device)
}

func simBroken(device int) error {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.devices[device].broken
}

// A simEvent is done when its last record is.
type simEvent struct {
	mu   sync.Mutex
	done chan struct{}
	at   time.Time
}

// mapMemory returns memory of the host that takes nothing until it is touched.
func mapMemory(bytes int64, prot int) ([]byte, error) {
	return syscall.Mmap(-1, 0, int(bytes), prot, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
}

// allocate makes a region; device memory counts as used. The caller holds no lock.
func (s *simulation) allocate(call, kind string, device int, bytes int64) (*simRegion, error) {
	if err := s.asked(call, device); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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

// release gives the region at addr back, when the device has ended its work.
func (s *simulation) release(call string, d *Device, addr uintptr) error {
	if call != "cuMemPoolTrimTo" {
		_ = syncContext(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
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
	return simError(call, d.index, 1, "CUDA_ERROR_INVALID_VALUE")
}

// reach returns memory that work of a device touches. What it cannot use breaks it.
func (s *simulation) reach(device int, addr uintptr, bytes int64, byKernel bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := addr; at < addr+uintptr(bytes); {
		r := s.find(at)
		switch {
		case r == nil && s.pageable:
			return bytesAt(addr, int(bytes))
		case r == nil || (byKernel || r.pool != nil || r.kind == "mapped") && !s.mayUse(device, r):
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
		return r.pool.access[device]
	}
	return s.devices[device].enabled[r.device]
}

func simWords(b []byte) []uint32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4)
}

func simWord(i int, seed uint32) uint32 {
	z := uint32(i)*0x9e3779b9 ^ seed
	z = (z ^ z>>16) * 0x85ebca6b
	return z ^ z>>13
}

// simKernels do what the kernels of that name do, with their packed arguments.
var simKernels = map[string]func(device int, grid, block Dim, a []byte){
	"spin": func(_ int, _, _ Dim, a []byte) { time.Sleep(time.Duration(simArg(a, 0))) },
	"stamp": func(device int, _, _ Dim, a []byte) {
		words, seed := simWords(sim.reach(device, uintptr(simArg(a, 0)), int64(4*simArg(a, 8)), true)), uint32(simArg(a, 16))
		for i := range words {
			words[i] = simWord(i, seed)
		}
	},
	"verify": func(device int, _, _ Dim, a []byte) {
		bad, seed := uint64(0), uint32(simArg(a, 16))
		for i, w := range simWords(sim.reach(device, uintptr(simArg(a, 0)), int64(4*simArg(a, 8)), true)) {
			if w != simWord(i, seed) {
				bad++
			}
		}
		if wrong := sim.reach(device, uintptr(simArg(a, 24)), 8, true); wrong != nil && bad > 0 {
			binary.NativeEndian.PutUint64(wrong, binary.NativeEndian.Uint64(wrong)+bad)
		}
	},
	"double": func(device int, _, block Dim, a []byte) {
		for i, words := 0, simWords(sim.reach(device, uintptr(simArg(a, 0)), 4*int64(block.X), true)); i < len(words); i++ {
			words[i] = math.Float32bits(2 * math.Float32frombits(words[i]))
		}
	},
	"subtract": func(device int, _, _ Dim, args []byte) {
		n, scale := int64(uint32(simArg(args, 28))), math.Float32frombits(uint32(simArg(args, 24)))
		var v [3][]uint32
		for k := range v {
			if v[k] = simWords(sim.reach(device, uintptr(simArg(args, 8*k)), 4*n, true)); v[k] == nil {
				return
			}
		}
		for i := range v[0] {
			v[0][i] = math.Float32bits(math.Float32frombits(v[1][i]) - scale*math.Float32frombits(v[2][i]))
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
func retainContext(n int) (handle, error)     { return handle(n + 1), nil }
func releaseContext(n int) error              { return nil }
func deviceName(n int) (string, error)        { return "simulated", nil }
func canUsePageable(n int) bool               { return sim.pageable }
func canPeer(n, peer int) (bool, error)       { return sim.peers, nil }
func eventDestroy(d *Device, e handle) error  { return nil }
func graphFree(d *Device, graph handle) error { return nil }
func moduleUnload(d *Device, m handle) error  { return nil }

func graphDestroy(d *Device, exec handle) error { return nil }

func enablePeer(d *Device, peer int) error {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.devices[d.index].enabled[peer] = true
	return nil
}

func memInfo(d *Device) (free, total int64, err error) {
	if err := sim.asked("cuMemGetInfo", d.index); err != nil {
		return 0, 0, err
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	x := sim.devices[d.index]
	return x.total - x.used, x.total, nil
}

func syncContext(d *Device) error {
	if err := sim.asked("cuCtxSynchronize", d.index); err != nil {
		return err
	}
	list := []*simStream{sim.devices[d.index].null}
	sim.mu.Lock()
	for _, o := range sim.objects {
		if s, ok := o.(*simStream); ok && s.device == d.index {
			list = append(list, s)
		}
	}
	sim.mu.Unlock()
	var err error
	for _, s := range list {
		err = errors.Join(err, s.wait())
	}
	return errors.Join(err, trimPools(d))
}

func calls() (all []CallCount) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
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
func memFree(d *Device, addr uintptr) error  { return sim.release("cuMemFree", d, addr) }
func hostFree(d *Device, addr uintptr) error { return sim.release("cuMemFreeHost", d, addr) }

func hostRegister(d *Device, addr uintptr, bytes int64) error {
	if err := sim.asked("cuMemHostRegister", d.index); err != nil {
		return err
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if sim.find(addr) != nil {
		return simError("cuMemHostRegister", d.index, 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED")
	}
	sim.regions = append(sim.regions, &simRegion{addr: addr, bytes: bytes, kind: "registered", device: d.index})
	return nil
}
func hostUnregister(d *Device, addr uintptr) error {
	return sim.release("cuMemHostUnregister", d, addr)
}

func prefetch(s *Stream, addr uintptr, bytes int64, device int) error {
	if err := sim.asked("cuMemPrefetchAsync", s.dev.index); err != nil {
		return err
	}
	return nil
}
func advise(d *Device, addr uintptr, bytes int64, a Advice, device int) error {
	if err := sim.asked("cuMemAdvise", d.index); err != nil {
		return err
	}
	return nil
}

const simGranule = 2 << 20

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
	sim.mu.Lock()
	defer sim.mu.Unlock()
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
	sim.mu.Lock()
	defer sim.mu.Unlock()
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
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.calls["cuMemMap"]++
	for k, h := range memory {
		c, at := sim.chunks[h], addr+uintptr(int64(k)*bytes)
		if err := simMmap(at, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED, int(sim.memory.Fd()), c.at); err != nil {
			return err
		}
		c.mapped++
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
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, r := range sim.regions {
		if r.addr >= addr && r.addr < addr+uintptr(bytes) {
			r.users[int(users[0])] = true
		}
	}
	return nil
}

func unmapChunks(d *Device, addr uintptr, bytes int64) error {
	sim.mu.Lock()
	defer sim.mu.Unlock()
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
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.add(&simPool{device: d.index, threshold: threshold, free: map[int64][]*simRegion{}, access: map[int]bool{}}), nil
}
func poolCurrent(d *Device) (handle, error) { return sim.devices[d.index].pool, nil }
func poolDestroy(d *Device, h handle) error { return poolTrim(d, h, 0) }

func poolThreshold(d *Device, h handle, bytes uint64) error {
	simObject[*simPool](h).threshold = bytes
	return nil
}

func poolTrim(d *Device, h handle, keep int64) error {
	p := simObject[*simPool](h)
	var gone []*simRegion
	sim.mu.Lock()
	for n, list := range p.free {
		for len(list) > 0 && p.usage.Reserved > keep {
			gone, list = append(gone, list[len(list)-1]), list[:len(list)-1]
			p.usage.Reserved -= n
		}
		p.free[n] = list
	}
	sim.mu.Unlock()
	var err error
	for _, r := range gone {
		err = errors.Join(err, sim.release("cuMemPoolTrimTo", d, r.addr))
	}
	return err
}

func poolUsage(d *Device, h handle) (pool.Usage, error) {
	p := simObject[*simPool](h)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return p.usage, nil
}

func poolAccess(d *Device, h handle, device int) error {
	p := simObject[*simPool](h)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	p.access[device] = true
	return nil
}

func poolAlloc(d *Device, h, stream handle, bytes int64) (uintptr, error) {
	p := simObject[*simPool](h)
	sim.mu.Lock()
	var r *simRegion
	if list := p.free[bytes]; len(list) > 0 {
		r, p.free[bytes] = list[len(list)-1], list[:len(list)-1]
	}
	sim.mu.Unlock()
	if r == nil {
		var err error
		if r, err = sim.allocate("cuMemAllocFromPoolAsync", "device", d.index, bytes); err != nil {
			return 0, err
		}
		sim.mu.Lock()
		r.pool = p
		p.usage.Reserved += bytes
		p.usage.ReservedPeak = max(p.usage.ReservedPeak, p.usage.Reserved)
		sim.mu.Unlock()
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	p.usage.Used += bytes
	p.usage.UsedPeak = max(p.usage.UsedPeak, p.usage.Used)
	return r.addr, nil
}

func poolFree(d *Device, stream handle, addr uintptr) error {
	sim.mu.Lock()
	r := sim.find(addr)
	sim.mu.Unlock()
	simStreamOf(d, stream).do(func() {
		sim.mu.Lock()
		p := r.pool
		p.usage.Used -= r.bytes
		p.free[r.bytes] = append(p.free[r.bytes], r)
		sim.mu.Unlock()
	})
	return nil
}

// trimPools gives back what the pools of a device hold above their thresholds.
func trimPools(d *Device) (err error) {
	sim.mu.Lock()
	all := map[handle]uint64{}
	for h, o := range sim.objects {
		if p, ok := o.(*simPool); ok && p.device == d.index && uint64(p.usage.Reserved) > p.threshold {
			all[h] = p.threshold
		}
	}
	sim.mu.Unlock()
	for h, keep := range all {
		err = errors.Join(err, poolTrim(d, h, int64(keep)))
	}
	return err
}

func streamCreate(d *Device) (handle, error) {
	if err := sim.asked("cuStreamCreate", d.index); err != nil {
		return 0, err
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.calls["cuStreamCreate"]++
	return sim.add(newSimStream(d.index)), nil
}
func streamDestroy(s *Stream) error { return nil }

func streamIdle(s *Stream) (bool, error) {
	if err := sim.asked("cuStreamQuery", s.dev.index); err != nil {
		return false, err
	}
	x := simStreamOf(s.dev, s.h)
	x.mu.Lock()
	idle := x.left == 0
	x.mu.Unlock()
	if idle {
		return true, errors.Join(simBroken(s.dev.index), trimPools(s.dev))
	}
	return false, nil
}

func streamSync(s *Stream) error {
	if err := sim.asked("cuStreamSynchronize", s.dev.index); err != nil {
		return err
	}
	return errors.Join(simStreamOf(s.dev, s.h).wait(), trimPools(s.dev))
}

func streamWait(s *Stream, e handle) error {
	if err := sim.asked("cuStreamWaitEvent", s.dev.index); err != nil {
		return err
	}
	x := simObject[*simEvent](e)
	x.mu.Lock()
	done := x.done
	x.mu.Unlock()
	if done != nil {
		simStreamOf(s.dev, s.h).do(func() { <-done })
	}
	return nil
}

func streamCapturing(s *Stream) (bool, error) {
	x := simStreamOf(s.dev, s.h)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.record != nil, nil
}

func captureBegin(s *Stream) error {
	if err := sim.asked("cuStreamBeginCapture", s.dev.index); err != nil {
		return err
	}
	x := simStreamOf(s.dev, s.h)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.record = new([]func())
	return nil
}

func captureEnd(s *Stream) (handle, error) {
	x := simStreamOf(s.dev, s.h)
	x.mu.Lock()
	work := x.record
	x.record = nil
	x.mu.Unlock()
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.add(work), nil
}

func graphInstantiate(d *Device, graph handle) (handle, error) { return graph, nil }

func graphLaunch(s *Stream, exec handle) error {
	if err := sim.asked("cuGraphLaunch", s.dev.index); err != nil {
		return err
	}
	for _, work := range *simObject[*[]func()](exec) {
		simStreamOf(s.dev, s.h).do(work)
	}
	return nil
}

func eventCreate(d *Device, timing bool) (handle, error) {
	if err := sim.asked("cuEventCreate", d.index); err != nil {
		return 0, err
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.add(&simEvent{}), nil
}

func eventRecord(s *Stream, e handle) error {
	if err := sim.asked("cuEventRecord", s.dev.index); err != nil {
		return err
	}
	x, done := simObject[*simEvent](e), make(chan struct{})
	x.mu.Lock()
	x.done = done
	x.mu.Unlock()
	simStreamOf(s.dev, s.h).do(func() {
		x.mu.Lock()
		x.at = time.Now()
		x.mu.Unlock()
		close(done)
	})
	return nil
}

func eventDone(d *Device, e handle) (bool, error) {
	x := simObject[*simEvent](e)
	x.mu.Lock()
	done := x.done
	x.mu.Unlock()
	if done == nil {
		return true, nil
	}
	select {
	case <-done:
		return true, simBroken(d.index)
	default:
		return false, nil
	}
}

func eventSync(d *Device, e handle) error {
	x := simObject[*simEvent](e)
	x.mu.Lock()
	done := x.done
	x.mu.Unlock()
	if done != nil {
		<-done
	}
	return simBroken(d.index)
}

func eventElapsed(d *Device, from, to handle) (float64, error) {
	return float64(simObject[*simEvent](to).at.Sub(simObject[*simEvent](from).at)) / float64(time.Millisecond), nil
}

func moduleLoad(d *Device, image string) (handle, error) {
	if err := sim.asked("cuModuleLoadData", d.index); err != nil {
		return 0, err
	}
	if !strings.Contains(image, ".entry") {
		return 0, simError("cuModuleLoadData", d.index, 218, "CUDA_ERROR_INVALID_PTX")
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.add(image), nil
}

func moduleFunction(d *Device, m handle, name string) (handle, error) {
	f, known := simKernels[name]
	if !known || !strings.Contains(simObject[string](m), name) {
		return 0, simError("cuModuleGetFunction", d.index, 500, "CUDA_ERROR_NOT_FOUND")
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.add(f), nil
}

func launch(s *Stream, fn handle, grid, block Dim, shared int, args []byte) error {
	if err := sim.asked("cuLaunchKernel", s.dev.index); err != nil {
		return err
	}
	f, packed := simObject[func(int, Dim, Dim, []byte)](fn), append([]byte(nil), args...)
	simStreamOf(s.dev, s.h).do(func() { f(s.dev.index, grid, block, packed) })
	return nil
}

func simCopy(s *Stream, dst, src uintptr, bytes int64) {
	device := s.dev.index
	simStreamOf(s.dev, s.h).do(func() {
		copy(sim.reach(device, dst, bytes, false), sim.reach(device, src, bytes, false))
	})
}

func copyAsync(s *Stream, dst, src uintptr, bytes int64) error {
	if err := sim.asked("cuMemcpyAsync", s.dev.index); err != nil {
		return err
	}
	simCopy(s, dst, src, bytes)
	return nil
}

func copyPeer(s *Stream, dst uintptr, to int, src uintptr, from int, bytes int64) error {
	if err := sim.asked("cuMemcpyPeerAsync", s.dev.index); err != nil {
		return err
	}
	simStreamOf(s.dev, s.h).do(func() {
		there := sim.reach(from, src, bytes, false)
		if !sim.peers { // by way of the host
			there = append([]byte(nil), there...)
			sim.mu.Lock()
			sim.staged++
			sim.mu.Unlock()
		}
		copy(sim.reach(to, dst, bytes, false), there)
	})
	return nil
}

func upload(s *Stream, dst uintptr, src unsafe.Pointer, bytes int64) (bool, error) {
	if err := sim.asked("cuMemcpyHtoDAsync", s.dev.index); err != nil {
		return false, err
	}
	from := unsafe.Slice((*byte)(src), bytes)
	sim.mu.Lock()
	pinned := sim.find(uintptr(src)) != nil
	sim.mu.Unlock()
	if !pinned {
		from = append([]byte(nil), from...)
	}
	device := s.dev.index
	simStreamOf(s.dev, s.h).do(func() { copy(sim.reach(device, dst, bytes, false), from) })
	return pinned, nil
}

func download(s *Stream, dst unsafe.Pointer, src uintptr, bytes int64) error {
	if err := sim.asked("cuMemcpyDtoHAsync", s.dev.index); err != nil {
		return err
	}
	device := s.dev.index
	simStreamOf(s.dev, s.h).do(func() {
		copy(unsafe.Slice((*byte)(dst), bytes), sim.reach(device, src, bytes, false))
	})
	return nil
}

func fill(s *Stream, dst uintptr, pattern []byte, count int64) error {
	if err := sim.asked("cuMemsetAsync", s.dev.index); err != nil {
		return err
	}
	device, p := s.dev.index, append([]byte(nil), pattern...)
	simStreamOf(s.dev, s.h).do(func() {
		b := sim.reach(device, dst, int64(len(p))*count, false)
		for n := copy(b, p); n > 0 && n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	})
	return nil
}

// What a tool was told of ranges and marks.
var simTool struct {
	sync.Mutex
	listens bool
	told    []string
}

func nvtxLoad() bool { return simTool.listens }

func nvtxStart(text string) uint64 {
	nvtxMark("begin " + text)
	simTool.Lock()
	defer simTool.Unlock()
	return uint64(len(simTool.told) - 1)
}

func nvtxEnd(id uint64) {
	simTool.Lock()
	defer simTool.Unlock()
	simTool.told = append(simTool.told, strings.Replace(simTool.told[id], "begin", "end", 1))
}

func nvtxMark(text string) {
	simTool.Lock()
	defer simTool.Unlock()
	simTool.told = append(simTool.told, text)
}

// held is how many pieces of memory the driver has handed out.
func held() int {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return len(sim.regions)
}
