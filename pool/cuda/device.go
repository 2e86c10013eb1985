package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/pressure"
)

// handle is a C handle of the driver: a context, stream, event, module,
// function or pool. It never points to Go memory.
type handle uintptr

// A Device is one GPU. Its methods are safe for concurrent use.
type Device struct {
	index int
	name  string
	ctx   handle
	null  Stream

	// sync holds a wait for the GPU back until a policy has been asked.
	sync atomic.Pointer[func(wait func() error) error]

	mu      sync.Mutex
	streams map[uint32]*Stream
	nextID  uint32
	peers   map[int]bool // devices whose memory this one may use, or not
}

var startOnce = sync.OnceValue(start)

// Count returns the number of GPUs that the driver shows to this process. It
// returns [ErrNoCUDA] without the build tag, and the driver's error when there
// is no driver or no GPU.
func Count() (int, error) {
	if err := startOnce(); err != nil {
		return 0, err
	}
	return countDevices()
}

// Open returns GPU n, counted from 0, with its primary context. The caller owns
// it and closes it. Each Open of the same GPU shares the context but has its own
// streams and its own sync hook.
func Open(n int) (*Device, error) {
	count, err := Count()
	if err != nil {
		return nil, err
	}
	if n < 0 || n >= count {
		return nil, fmt.Errorf("cuda: no device %d: the driver shows %d", n, count)
	}
	name, err := deviceName(n)
	if err != nil {
		return nil, err
	}
	ctx, err := retainContext(n)
	if err != nil {
		return nil, err
	}
	d := &Device{index: n, name: name, ctx: ctx, streams: map[uint32]*Stream{}, peers: map[int]bool{}}
	d.null.dev = d
	d.streams[0] = &d.null
	return d, nil
}

// Close waits for the device, closes the streams that are still open and gives
// the context back. Memory that came from the device's upstreams must have been
// given back before.
func (d *Device) Close() error {
	err := syncContext(d)
	for _, s := range d.openStreams() {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, releaseContext(d.index))
}

func (d *Device) openStreams() (open []*Stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, s := range d.streams {
		if id != 0 && !s.closed.Load() {
			open = append(open, s)
		}
	}
	return open
}

// Index returns the number of the device, as the driver counts.
func (d *Device) Index() int { return d.index }

// Name returns the name of the GPU.
func (d *Device) Name() string { return d.name }

// Space returns the space of the device's own memory.
func (d *Device) Space() pressure.Space { return pressure.Device(d.index) }

// String returns the number and name of the device.
func (d *Device) String() string { return fmt.Sprintf("device %d (%s)", d.index, d.name) }

// MemInfo asks the driver for the free and total bytes of the device, over all
// processes that use it.
func (d *Device) MemInfo() (free, total int64, err error) { return memInfo(d) }

// DriverVersion returns the CUDA version that the driver supports, as 1000 x
// major + 10 x minor.
func (d *Device) DriverVersion() int { return driverVersion() }

// OnSync makes every wait for the device go through f, which must call wait
// exactly once and return its error: [gc.Collector.Sync] is meant. Nil lets
// waits through.
func (d *Device) OnSync(f func(wait func() error) error) {
	if f == nil {
		d.sync.Store(nil)
		return
	}
	d.sync.Store(&f)
}

// wait blocks in wait, as a sync point.
func (d *Device) wait(wait func() error) error {
	if f := d.sync.Load(); f != nil {
		return (*f)(wait)
	}
	return wait()
}

// Synchronize blocks until all work on all streams of the device has ended. It
// is a sync point if any stream of d has work left.
func (d *Device) Synchronize() error {
	for _, s := range append(d.openStreams(), &d.null) {
		if idle, err := streamIdle(s); err != nil || idle {
			if err != nil {
				return err
			}
			continue
		}
		return d.wait(func() error { return syncContext(d) })
	}
	return syncContext(d)
}

// canUse reports whether kernels on d may use the memory of peer, and enables
// it the first time.
func (d *Device) canUse(peer *Device) (bool, error) {
	if d.index == peer.index {
		return true, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if ok, known := d.peers[peer.index]; known {
		return ok, nil
	}
	ok, err := peerPossible(d, peer)
	if err == nil && ok {
		err = enablePeer(d, peer)
	}
	if err != nil {
		return false, err
	}
	d.peers[peer.index] = ok
	return ok, nil
}
