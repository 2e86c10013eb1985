package cuda

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// An upstream gives a pool memory of one kind that lies on, or is used by, one device. It is safe
// for concurrent use.
type upstream struct {
	order
	kind     string
	allocate func(bytes int64, s *Stream) (uintptr, error)
	release  func(addr uintptr, s *Stream) error
	info     func() (pressure.Info, error)
}

// Allocate is that of [pool.Upstream].
func (u *upstream) Allocate(bytes int64, stream uint32) (uintptr, error) {
	return u.allocate(bytes, u.dev.stream(stream))
}

// Release is that of [pool.Upstream].
func (u *upstream) Release(addr uintptr, _ int64, stream uint32) error {
	return u.release(addr, u.dev.stream(stream))
}

// Info returns the free and total bytes of the memory, as the driver reports them.
func (u *upstream) Info() (pressure.Info, error) { return u.info() }

// Shares implements [pool.Sharer]. Device memory and the driver's pools share the device; pinned
// and managed memory share the machine's. So all pools on a device share its limits and make room
// for each other.
func (u *upstream) Shares() pressure.Space {
	switch u.kind {
	case "pinned":
		return pressure.Pinned
	case "managed":
		return pressure.Managed
	}
	return u.dev.Space()
}

func (u *upstream) device() *Device { return u.dev }

// String names the kind of memory and the device.
func (u *upstream) String() string { return fmt.Sprintf("%s memory of %v", u.kind, u.dev) }

// deviceMemory is an upstream whose memory the processor cannot address; arrays reach it through
// copies.
type deviceMemory struct {
	upstream
	mover
	*pages
}

// Memory returns the device's own memory. It is a [pool.Mapper]: a pool maps chunks of it behind
// addresses of its own, and moves them where they are needed. So fragments of one size are memory
// for another. If the device cannot map memory, or the pool caches nothing, memory comes from
// cuMemAlloc, and each segment goes back as a whole.
func (d *Device) Memory() pool.Upstream { return d.memory() }

func (d *Device) memory() *deviceMemory {
	m := d.segments()
	granule, err := mapGranule(d)
	if err != nil {
		granule = 0
	}
	m.pages = &pages{dev: d, granule: granule, memory: map[uintptr]chunk{}}
	return m
}

// segments returns the device's own memory as cuMemAlloc gives it: each segment keeps its
// addresses, and goes back as a whole. Giving it back waits for its stream, so it wants a caching
// pool.
func (d *Device) segments() *deviceMemory {
	return &deviceMemory{*d.upstream("device", d.info, memAlloc, memFree), mover{d}, nil}
}

// upstream returns memory that the driver allocates and frees. A release waits for the work of its
// stream: nothing says that the driver does.
func (d *Device) upstream(kind string, info func() (pressure.Info, error), alloc func(*Device, int64) (uintptr, error), free func(*Device, uintptr) error) *upstream {
	return &upstream{order: order{d}, kind: kind, info: info,
		allocate: func(bytes int64, _ *Stream) (uintptr, error) { return alloc(d, bytes) },
		release: func(addr uintptr, s *Stream) error {
			if s != nil {
				if err := s.await(); err != nil {
					return err
				}
			}
			return free(d, addr)
		}}
}

// Pinned returns page-locked host memory. The GPU reads and writes it at full speed, and copies of
// it run beside the program. All devices can use it. Allocate it with stream 0: the processor
// touches it first, and would wait for any other stream.
func (d *Device) Pinned() pool.Upstream {
	return d.upstream("pinned", pressure.HostMemory, hostAlloc, hostFree)
}

// Managed returns memory that the driver moves between host and device when it is touched. It may
// be larger than the device if a step touches less than the device has; otherwise the driver moves
// the same memory again and again. It counts as the machine's memory, with limits of its own
// (CUDA.jl 6.1 does so, #3092). See [Stream.Prefetch] and [Device.Advise].
func (d *Device) Managed() pool.Upstream {
	return d.upstream("managed", pressure.HostMemory, managedAlloc, memFree)
}

func (d *Device) info() (pressure.Info, error) {
	free, total, err := memInfo(d)
	return pressure.Info{Free: free, Total: total}, err
}

// order tells a pool about the progress of a device's streams.
type order struct{ dev *Device }

// Synchronize waits for the device, and for others whose work has used memory that was not theirs.
// It is no sync point: the pool asks for it while it makes room.
func (o order) Synchronize() error {
	err := o.dev.settle()
	for _, d := range streams.devices() {
		if d != o.dev && d.abroad.Load() {
			err = errors.Join(err, d.settle())
		}
	}
	return err
}

// Fence is that of [pool.Fencer].
func (o order) Fence(stream uint32) (pool.Fence, error) {
	return o.dev.end(stream)
}

// Settle is that of [array.Settler].
func (o order) Settle(stream uint32, tainted bool) error {
	if tainted {
		return errors.New("cuda: the processor uses an array that a graph uses, which is being captured")
	}
	if s := o.dev.stream(stream); s != nil {
		return s.settle()
	}
	return nil
}

// Advice tells the driver how a range of managed memory will be used. The values are the driver's
// CUmem_advise.
type Advice uint8

const (
	ReadMostly     Advice = 1 // keep copies where it is read
	PreferLocation Advice = 3 // keep it on the device given
)

// HostMemory is the device number that means the host, for [Stream.Prefetch] and [Device.Advise].
const HostMemory = -1

// Prefetch queues the migration of a range of managed memory to a device, by number, or to the
// host.
func (s *Stream) Prefetch(addr uintptr, bytes int64, device int) error {
	if err := s.takes("a prefetch"); err != nil {
		return err
	}
	return prefetch(s, addr, bytes, device)
}

// Advise tells the driver how a range of managed memory will be used by device, by number, or by
// the host.
func (d *Device) Advise(addr uintptr, bytes int64, a Advice, device int) error {
	return advise(d, addr, bytes, a, device)
}
