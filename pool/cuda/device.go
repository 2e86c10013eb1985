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
)

// handle is a C handle of the driver: a context, stream, event, module, function or pool. It never
// points to Go memory.
type handle uintptr

// A Device is one GPU. Its methods are safe for concurrent use.
type Device struct {
	index int
	name  string
	ctx   handle
	null  Stream

	closed  atomic.Bool
	abroad  atomic.Bool   // its work has used memory of another device's upstreams
	ended   atomic.Bool   // Close has waited for all work: events are over
	pollFor time.Duration // how long a wait polls before it blocks
	staging atomic.Pointer[pool.Pool]

	total int64 // bytes

	// settling is held for reading to wait for the whole device, and for writing while a capture
	// begins or ends. The driver refuses that wait while a stream captures.
	settling  sync.RWMutex
	capturing int // captures that have begun; guarded by settling

	// syncer is asked before each wait for the GPU, with the place of the wait.
	syncer                     atomic.Pointer[syncer]
	onDevice, onStream, onCopy gc.WaitPlace

	mu     sync.Mutex
	peers  map[int]bool // devices whose memory this one may use, or not
	slices *registered  // see Register; nil: none yet
}

var startOnce = sync.OnceValue(start)

// Count returns the number of GPUs that the driver shows to this process. It returns [ErrNoCUDA]
// without the build tag, and the driver's error when there is no driver or no GPU.
func Count() (int, error) {
	if err := startOnce(); err != nil {
		return 0, err
	}
	return countDevices()
}

// Open returns GPU n, counted from 0, with its primary context. The caller owns it and closes it.
// Each Open of the same GPU shares the context but has its own streams and its own collector.
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
	d := &Device{index: n, name: name, ctx: ctx, peers: map[int]bool{}, pollFor: pollTime}
	d.null.dev = d
	d.onDevice.Name, d.onStream.Name = "device synchronize", "stream synchronize"
	d.onCopy.Name = "copy to host"
	streams.add(&d.null)
	_, d.total, err = memInfo(d)
	if err := errors.Join(err, grantMapped(n)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close waits for the device, closes the streams that are still open and gives the context back.
// Memory that came from the device's upstreams must have been given back before.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	if d.slices != nil {
		d.slices.pool.Close()
	}
	err := d.settle()
	for _, s := range streams.of(d) {
		if s != &d.null {
			err = errors.Join(err, s.Close())
		}
		streams.remove(s)
	}
	d.settling.Lock() // nothing that whileOpen has begun is under way
	d.ended.Store(true)
	d.settling.Unlock()
	return errors.Join(err, releaseContext(d.index))
}

// stream returns the stream of that number, which may be of another device. It returns nil if the
// stream was closed and its work has ended. Number 0 is the default stream.
func (d *Device) stream(id uint32) *Stream {
	if id == 0 {
		return &d.null
	}
	return streams.get(id)
}

// Space returns the space of the device's own memory.
func (d *Device) Space() pressure.Space { return pressure.Device(d.index) }

// String returns the number and name of the device.
func (d *Device) String() string { return fmt.Sprintf("device %d (%s)", d.index, d.name) }

// A syncer calls each wait once.
type syncer interface {
	Sync(place *gc.WaitPlace, wait func() error) error
}

// SyncThrough makes every wait for the device a sync point of s, which may hide a collection behind
// it. S is a [pool.Pool], or a [gc.Collector] that serves several. If s is a pool, allocations of
// the driver beside it climb its ladder: modules, graphs and streams. Nil undoes that. [Default]
// does it.
func (d *Device) SyncThrough(s syncer) {
	if s == nil {
		d.syncer.Store(nil)
		return
	}
	d.syncer.Store(&s)
}

// retry calls f, which has the driver allocate memory. Where it finds none, the pool that the waits
// go through makes room: see [pool.Pool.Retry].
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
	if s := d.syncer.Load(); s != nil {
		return (*s).Sync(place, f)
	}
	return f()
}

// A goroutine that blocks in the driver loses its processor after 20 us. When it returns it has to
// find another one, and competes with the workers of a collection. So waits poll first, for longer
// than a step that computes a few numbers. With polling the dense model takes 0.99 of the time,
// within the spread of four runs each (results/2026-11-21-cuda-dense, poll.bench).
const pollTime = 200 * time.Microsecond

func (d *Device) poll(done func() (bool, error), block func() error) error {
	for begin := time.Now(); time.Since(begin) < d.pollFor; {
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	return block()
}

// Synchronize blocks until all work on all streams of the device has ended. It is a sync point if
// any stream of d has work left.
func (d *Device) Synchronize() error {
	for _, s := range streams.of(d) {
		if idle, err := s.idle(); err != nil || idle {
			if err != nil {
				return err
			}
			continue
		}
		return d.wait(&d.onDevice, d.settle)
	}
	return d.settle()
}

// settle waits for all work of the device, and is no sync point. While a stream of d captures it
// waits for each stream alone.
func (d *Device) settle() error {
	d.settling.RLock()
	defer d.settling.RUnlock()
	return d.settleLocked()
}

// settleLocked is settle for a caller that holds settling.
func (d *Device) settleLocked() (err error) {
	if d.capturing == 0 {
		return syncContext(d)
	}
	for _, s := range streams.of(d) {
		err = errors.Join(err, s.await())
	}
	return err
}

// whileOpen calls f unless d was closed. Close waits for f. The caller must not hold settling;
// whileOpen holds it for f.
func (d *Device) whileOpen(f func() error) error {
	d.settling.RLock()
	defer d.settling.RUnlock()
	if d.ended.Load() {
		return nil
	}
	return f()
}

// openContexts returns the primary contexts of the devices that are open, by number.
func openContexts() map[int]handle {
	all := map[int]handle{}
	for _, d := range streams.devices() {
		all[d.index] = d.ctx
	}
	return all
}

// canUse reports whether kernels on d may use the memory of another device, and enables it the
// first time.
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
