package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

// Variables of the environment that [Default] reads, beside the limits of
// [pressure.Limits.OrFromEnv] and the policy of [gc.New].
const (
	envMemory = "EAGERGC_DEFAULT_MEMORY" // the memory that Pools.Memory is: device, managed (or unified), pinned (or host)
	envPool   = "EAGERGC_MEMORY_POOL"    // none: pools cache nothing; on
)

// Pools are the memories of one device, with one collector. Every wait for the device is a sync
// point. Uploads go through pinned memory, so that they do not wait. Allocations of the driver
// beside the pools climb their ladder: modules, graphs, streams.
//
// Without a GPU, or without the tag cuda, all three pools are one of host memory and Device is nil.
// A program that uses only arrays runs there, too.
type Pools struct {
	Device    *Device       // nil: no device
	Memory    *pool.Pool    // device memory, or the choice of EAGERGC_DEFAULT_MEMORY
	Pinned    *pool.Pool    // page-locked host memory
	Managed   *pool.Pool    // memory that moves between host and device
	Collector *gc.Collector // of all of them

	index   int
	mu      sync.Mutex
	modules map[string]*Module // by image
	leaks   error              // LiveErrors of the pools when they close
}

// Settings configure the pools of [Default]. The zero value means the defaults.
type Settings struct {
	Collector gc.Config // policy, log and recorder

	// Pool configures each pool: sites, trace and Warn. Its limits are those of Memory alone.
	// Default sets Upstream, Space, Collector, Direct and ExactPeaks. If Sites is 0, the pools take
	// [pool.SitesByLimit], so that an out-of-memory error names the holders.
	Pool pool.Config
}

var defaults struct {
	sync.Mutex
	pools map[int]*Pools
}

// Default returns the pools of GPU n. The first call makes them; later calls return the same ones
// until they are closed. It takes at most one [Settings], and fails if it gets settings for pools
// that exist already. It also fails if there are GPUs and n is not the number of one, and as
// [pool.New] and [gc.New] do. It is safe for concurrent use.
func Default(n int, settings ...Settings) (*Pools, error) {
	defaults.Lock()
	defer defaults.Unlock()
	if p := defaults.pools[n]; p != nil {
		if len(settings) > 0 {
			return nil, fmt.Errorf("cuda: settings for the pools of GPU %d, which are there already: close them first", n)
		}
		return p, nil
	}
	if len(settings) > 1 {
		return nil, fmt.Errorf("cuda: %d settings for the pools of GPU %d", len(settings), n)
	}
	p := &Pools{index: n, modules: map[string]*Module{}}
	if err := p.open(append(settings, Settings{})[0]); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if defaults.pools == nil {
		defaults.pools = map[int]*Pools{}
	}
	defaults.pools[n] = p
	return p, nil
}

func (p *Pools) open(with Settings) (err error) {
	if p.Collector, err = gc.New(with.Collector); err != nil {
		return err
	}
	cfg := with.Pool
	cfg.Collector, cfg.ExactPeaks = p.Collector, true
	cfg.Direct = pressure.EnvChoice(envPool, "on", "none") == "none"
	if cfg.Sites == 0 {
		cfg.Sites = pool.SitesByLimit
	}
	cfg.Warn = func(err error) {
		if with.Pool.Warn != nil {
			with.Pool.Warn(err)
		}
		if _, is := err.(*pool.LiveError); is {
			p.leaks = errors.Join(p.leaks, err)
		}
	}
	over := func(up pool.Upstream, space pressure.Space, isMemory bool) (made *pool.Pool) {
		if err == nil {
			cfg.Upstream, cfg.Space, cfg.Limits = up, space, pressure.Limits{}
			if isMemory {
				cfg.Limits = with.Pool.Limits
			}
			made, err = pool.New(cfg)
		}
		return made
	}
	if count, none := Count(); none != nil || count == 0 {
		p.Memory = over(pool.Host{}, pressure.Host, true)
		p.Pinned, p.Managed = p.Memory, p.Memory
		return err
	}
	if p.Device, err = Open(p.index); err != nil {
		return err
	}
	kind := pressure.EnvChoice(envMemory, "device", "managed", "unified", "pinned", "host")
	isPinned, isManaged := kind == "pinned" || kind == "host", kind == "managed" || kind == "unified"
	p.Pinned = over(p.Device.Pinned(), pressure.Pinned, isPinned)
	p.Managed = over(p.Device.Managed(), pressure.Managed, isManaged)
	switch {
	case isPinned:
		p.Memory = p.Pinned
	case isManaged:
		p.Memory = p.Managed
	default:
		p.Memory = over(p.Device.Memory(), p.Device.Space(), true)
	}
	if err == nil {
		p.Device.SyncThrough(p.Memory)
		p.Device.StageThrough(p.Pinned)
	}
	return err
}

// Kernel returns the kernel of that name in PTX text or a cubin, which is loaded at the first call
// and unloaded by Close. Without a device it fails with [ErrNoDevice].
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

// Close closes the pools, the collector and the device. Arrays that are still reachable must not be
// used afterwards. The error names them, as a [pool.LiveError] for each pool. To close twice is
// harmless.
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
		p.Device.StageThrough(nil)
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
	err, p.leaks = errors.Join(err, p.leaks), nil
	if p.Device != nil {
		err = errors.Join(err, p.Device.Close())
	}
	return err
}
