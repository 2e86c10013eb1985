package cuda

import (
	"errors"
	"sync"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Variables of the environment that [Default] reads, beside the limits of
// [pressure.Limits.OrFromEnv] and the policy of [gc.New].
const (
	envMemory = "EAGERGC_DEFAULT_MEMORY" // the memory that Pools.Memory is: device, managed or pinned
	envPool   = "EAGERGC_MEMORY_POOL"    // none: pools cache nothing; on
)

// Pools are the memories of one device, with one collector. Every wait for the
// device is a sync point, and uploads go through pinned memory, so that they do not
// wait. What the driver allocates beside the pools climbs their ladder: code that is
// loaded, graphs, streams.
//
// On a machine without a GPU, and in a program without the tag cuda, all three pools
// are one of host memory and Device is nil: a program that uses arrays alone runs
// there, too.
type Pools struct {
	Device    *Device       // nil: there is none
	Memory    *pool.Pool    // device memory, or what EAGERGC_DEFAULT_MEMORY says
	Pinned    *pool.Pool    // page-locked host memory
	Managed   *pool.Pool    // memory that moves between host and device
	Collector *gc.Collector // of all of them

	index   int
	mu      sync.Mutex
	modules map[string]*Module // by image
}

var defaults struct {
	sync.Mutex
	pools map[int]*Pools
}

// Default returns the pools of GPU n, which are made at the first call; later calls
// return the same ones until they are closed. It fails if there are GPUs and n is none
// of them, and as [pool.New] and [gc.New] do.
func Default(n int) (*Pools, error) {
	defaults.Lock()
	defer defaults.Unlock()
	if p := defaults.pools[n]; p != nil {
		return p, nil
	}
	p := &Pools{index: n, modules: map[string]*Module{}}
	if err := p.open(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if defaults.pools == nil {
		defaults.pools = map[int]*Pools{}
	}
	defaults.pools[n] = p
	return p, nil
}

func (p *Pools) open() (err error) {
	direct := pressure.EnvChoice(envPool, "on", "none") == "none"
	if p.Collector, err = gc.New(gc.Config{}); err != nil {
		return err
	}
	var sink trace.Sink
	over := func(up pool.Upstream, space pressure.Space) (made *pool.Pool) {
		if err == nil {
			made, err = pool.New(pool.Config{Upstream: up, Space: space, Collector: p.Collector, Direct: direct, Trace: sink})
		}
		return made
	}
	if count, none := Count(); none != nil || count == 0 {
		p.Memory = over(pool.Host{}, pressure.Host)
		p.Pinned, p.Managed = p.Memory, p.Memory
		return err
	}
	if p.Device, err = Open(p.index); err != nil {
		return err
	}
	if sink = p.Device.nvtx; sink != nil {
		p.Collector.SetRecorder(sink)
	}
	p.Pinned = over(p.Device.Pinned(), pressure.Pinned)
	p.Managed = over(p.Device.Managed(), pressure.Managed)
	switch pressure.EnvChoice(envMemory, "device", "managed", "pinned") {
	case "device":
		p.Memory = over(p.Device.Memory(), p.Device.Space())
	case "managed":
		p.Memory = p.Managed
	case "pinned":
		p.Memory = p.Pinned
	}
	if err == nil {
		p.Device.SyncThrough(p.Memory)
		p.Device.stageThrough(p.Pinned)
	}
	return err
}

// Kernel returns the kernel of that name in PTX text or a cubin, which is loaded at
// the first call and unloaded by Close. Without a device it fails with [ErrNoDevice].
func (p *Pools) Kernel(image, name string) (*Kernel, error) {
	if p.Device == nil {
		return nil, ErrNoDevice
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.modules[image]
	if m == nil {
		var err error
		if m, err = p.Device.Load(image); err != nil {
			return nil, err
		}
		p.modules[image] = m
	}
	return m.Kernel(name)
}

// Synchronize waits for all queued work, as a sync point.
func (p *Pools) Synchronize() error {
	if p.Device == nil {
		return p.Memory.Synchronize()
	}
	return p.Device.Synchronize()
}

// Close closes the pools, the collector and the device. Arrays that are still
// reachable must not be used afterwards. To close twice is harmless.
func (p *Pools) Close() error {
	defaults.Lock()
	defer defaults.Unlock()
	if defaults.pools[p.index] == p {
		delete(defaults.pools, p.index)
	}
	return p.close()
}

func (p *Pools) close() (err error) {
	if p.Device != nil {
		p.Device.SyncThrough(nil)
		p.Device.stageThrough(nil)
	}
	for _, m := range []*pool.Pool{p.Memory, p.Managed, p.Pinned} {
		if m != nil {
			m.Close()
		}
	}
	if p.Collector != nil {
		p.Collector.Close()
	}
	p.mu.Lock()
	for _, m := range p.modules {
		err = errors.Join(err, m.Close())
	}
	clear(p.modules)
	p.mu.Unlock()
	if p.Device != nil {
		err = errors.Join(err, p.Device.Close())
	}
	return err
}
