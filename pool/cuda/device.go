package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
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

	closed  atomic.Bool
	ended   atomic.Bool  // Close has waited for all work: events are over
	pollFor atomic.Int64 // ns
	staging atomic.Pointer[pool.Pool]

	total    int64                 // bytes
	pageable bool                  // it can use any memory of the host
	captured atomic.Pointer[Graph] // whose capture began last
	profile  atomic.Pointer[profile]
	nvtx     trace.Sink // nil: no tool listens

	// syncer is asked before each wait for the GPU, with the place of the wait.
	syncer                     atomic.Pointer[syncer]
	onDevice, onStream, onCopy gc.WaitPlace

	mu    sync.Mutex
	peers map[int]bool // devices whose memory this one may use, or not
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
// streams and its own collector.
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
	contexts.Store(n, ctx)
	d := &Device{index: n, name: name, ctx: ctx, peers: map[int]bool{}, nvtx: newNVTX()}
	d.null.dev = d
	d.PollFor(defaultPoll)
	d.onDevice.Name, d.onStream.Name = "device synchronize", "stream synchronize"
	d.onCopy.Name = "copy to host"
	streams.add(&d.null)
	_, d.total, err = memInfo(d)
	d.pageable = canUsePageable(n)
	if err := errors.Join(err, grantMapped(n)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close waits for the device, closes the streams that are still open and gives
// the context back. Memory that came from the device's upstreams must have been
// given back before.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	err := syncContext(d)
	for _, s := range streams.of(d) {
		if s != &d.null {
			err = errors.Join(err, s.Close())
		}
		streams.remove(s)
	}
	d.ended.Store(true)
	return errors.Join(err, releaseContext(d.index))
}

// stream returns the stream of that number, which may be of another device. It
// returns nil if the stream was closed and its work has ended. Number 0 is the
// default stream.
func (d *Device) stream(id uint32) *Stream {
	if id == 0 {
		return &d.null
	}
	return streams.get(id)
}

// Index returns the number of the device, as the driver counts.
func (d *Device) Index() int { return d.index }

// Name returns the name of the GPU.
func (d *Device) Name() string { return d.name }

// Space returns the space of the device's own memory.
func (d *Device) Space() pressure.Space { return pressure.Device(d.index) }

// String returns the number and name of the device.
func (d *Device) String() string { return fmt.Sprintf("device %d (%s)", d.index, d.name) }

// syncer is told of a wait, and must call it once.
type syncer interface {
	Sync(place *gc.WaitPlace, wait func() error) error
}

// SyncThrough makes every wait for the device a sync point of s, a [pool.Pool] or a
// [gc.Collector] that serves several, which may hide
// a collection behind it. If s is a pool, what the driver allocates beside it climbs
// its ladder: modules, graphs, streams, host buffers. Nil undoes that. [Default] does it.
func (d *Device) SyncThrough(s syncer) {
	if s == nil {
		d.syncer.Store(nil)
		return
	}
	d.syncer.Store(&s)
}

// retry calls f, which has the driver allocate memory. Where it finds none, the pool
// that the waits go through makes room: see [pool.Pool.Retry].
func (d *Device) retry(f func() error) error {
	if s := d.syncer.Load(); s != nil {
		if p, ok := (*s).(interface{ Retry(func() error) error }); ok {
			return p.Retry(f)
		}
	}
	return f()
}

// wait blocks in f, as a sync point.
func (d *Device) wait(place *gc.WaitPlace, f func() error) error {
	if p := d.profile.Load(); p != nil {
		begin := time.Now()
		defer func() { p.add("wait", place.Name, 1, 0, time.Since(begin)) }()
	}
	if wait := f; d.nvtx != nil {
		f = func() error { return ranged(place.Name, wait) }
	}
	if s := d.syncer.Load(); s != nil {
		return (*s).Sync(place, f)
	}
	return f()
}

// defaultPoll is above the waits of a step that computes a few numbers.
const defaultPoll = 200 * time.Microsecond

// PollFor makes waits ask the driver again and again, for up to limit, before they
// block in it. The default is 200 us; with 0 waits block at once. A goroutine that
// blocks in the driver loses its processor after 20 us. When it returns it has to
// find another one, and competes with the workers of a collection. With polling
// the dense model takes 0.99 of the time; the difference is within the spread of
// four runs each (results/2026-11-21-cuda-dense, poll.bench).
func (d *Device) PollFor(limit time.Duration) { d.pollFor.Store(int64(limit)) }

func (d *Device) poll(done func() (bool, error), block func() error) error {
	limit := time.Duration(d.pollFor.Load())
	for begin := time.Now(); time.Since(begin) < limit; {
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	return block()
}

// Synchronize blocks until all work on all streams of the device has ended. It
// is a sync point if any stream of d has work left.
func (d *Device) Synchronize() error {
	for _, s := range streams.of(d) {
		if idle, err := s.idle(); err != nil || idle {
			if err != nil {
				return err
			}
			continue
		}
		return d.wait(&d.onDevice, func() error { return syncContext(d) })
	}
	return syncContext(d)
}

// contexts are the primary contexts of the devices that were opened.
var contexts sync.Map // of handle, by device number

// several reports whether more than one device was opened.
func several() bool {
	n := 0
	contexts.Range(func(any, any) bool { n++; return n < 2 })
	return n > 1
}

// canUse reports whether kernels on d may use the memory of another device, and
// enables it the first time.
func (d *Device) canUse(device int) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ok, known := d.peers[device]; known {
		return ok, nil
	}
	ok, err := canPeer(d.index, device)
	if err == nil && ok {
		err = enablePeer(d, device)
	}
	if err != nil {
		return false, err
	}
	d.peers[device] = ok
	return ok, nil
}
