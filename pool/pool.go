package pool

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Config says how a pool works. The zero value is a caching pool of host memory, with the limits of
// the environment and no collector.
//
// Limits hold for all pools of the device together (see [Sharer]); the smallest of several counts. A
// limit that no pool sets is that of the environment (see [pressure.Limits.OrFromEnv]). Without any
// limit only the upstream refuses.
//
// Sites is the mean number of bytes between two blocks whose allocation site is noted. With 1 all
// blocks are, at 0.4 to 1.1 us each. See [DefaultSites] and [SitesByLimit].
type Config struct {
	Upstream   Upstream        // where segments come from; nil: Host
	Space      pressure.Space  // the memory that the upstream gives, for samples and traces
	Limits     pressure.Limits // of the device while this pool is open; see below
	Collector  *gc.Collector   // finds dead arrays; nil: at the first array the pool makes a private one with the policy never
	Trace      trace.Sink      // takes every event; nil = off
	Direct     bool            // cache nothing: every block is a segment of its own
	Sites      int64           // bytes between two sampled blocks; 0 = off; see below
	ExactPeaks bool            // make LivePeak exact, for about 10 ns more an allocation
	Warn       func(error)     // called with failures after which the pool goes on; nil = off
}

// A Pool hands out memory of one space and keeps freed memory for the next request. Its methods are
// safe for concurrent use. A call that frees never waits for a call that allocates. Make a Pool
// with [New].
type Pool struct {
	// These fields are read by every call and rarely written.
	cfg     Config
	mapper  Mapper                     // nil: every segment comes from Upstream.Allocate
	bypass  atomic.Int32               // above 0: freed pieces skip the caches, because of Direct, Close or a climber
	closed  atomic.Bool                // Close was called
	sink    atomic.Pointer[sink]       // takes the events; nil = none
	collect atomic.Pointer[collecting] // the collector; nil = none yet
	group   *group                     // the pools that share the memory, at least this one
	own     pressure.Limits            // of the configuration, in bytes; guarded by group.mu
	env     pressure.Limits            // own, completed by those of the environment
	caches  caches

	depot   depot
	core    core
	tracker tracker
	once    sync.Mutex // held while collect is made and while sink changes
	last    *sink      // the sink that was set last; guarded by once

	upstream upstreamCache
	ladder   ladder
	flight   inFlight
	sites    sites
}

// Errors that callers branch on.
var (
	ErrOutOfMemory = errors.New("pool: out of memory")     // see OutOfMemoryError
	ErrSize        = errors.New("pool: size out of range") // negative, or above MaxBytes
	ErrClosed      = errors.New("pool: closed")
)

// MaxBytes is the largest size that can be asked for, 64 TiB.
const MaxBytes = 1 << 46

// New returns a pool. It fails if a limit of the configuration is a share of a total that the
// upstream does not know. It also fails for a soft limit of a pool that is Direct. A limit of the
// environment that cannot hold is logged, and counts as not set.
func New(cfg Config) (*Pool, error) {
	if cfg.Upstream == nil {
		cfg.Upstream = Host{}
	}
	if cfg.Sites < SitesByLimit || cfg.Sites > MaxBytes {
		return nil, fmt.Errorf("pool: Sites is %d bytes: want 0 to %d, or SitesByLimit", cfg.Sites, int64(MaxBytes))
	}
	_, fences := cfg.Upstream.(Fencer)
	if _, waits := cfg.Upstream.(Synchronizer); fences && !waits {
		return nil, fmt.Errorf("pool: upstream %T is a Fencer but no Synchronizer: memory that a fence cannot be had for would be used again at once", cfg.Upstream)
	}
	p := &Pool{cfg: cfg}
	p.upstream.cacher, _ = cfg.Upstream.(Cacher)
	var err error
	if p.own, err = p.inBytes(cfg.Limits); err != nil {
		return nil, err
	}
	p.env = p.own.OrFromEnv(p.place(), p.inBytes)
	p.caches.init(1<<bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)), &p.tracker)
	if cfg.Direct {
		p.bypass.Add(1)
	}
	p.joinGroup()
	p.startSites()
	if err := p.openMapper(); err != nil {
		p.group.leave(p)
		return nil, err
	}
	p.sizeCaches(p.group.hard.Load())
	p.keepUpstream()
	p.SetTrace(cfg.Trace)
	p.group.estimate()
	if cfg.Collector != nil {
		p.attach(cfg.Collector, false)
	}
	return p, nil
}

func (p *Pool) warn(err error) {
	if p.cfg.Warn != nil {
		_ = guard.Error(func() error { p.cfg.Warn(err); return nil }) // a panic of Warn has no other receiver
	}
}

// Memory returns the bytes of a block, or nil if the processor cannot address them. The slice must
// not be used once the block is given back.
func (p *Pool) Memory(b Block) []byte {
	if _, device := p.cfg.Space.Device(); device || b.ref == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(b.Addr)), b.Bytes)
}

// Space returns the memory that the pool hands out.
func (p *Pool) Space() pressure.Space { return p.cfg.Space }

// Upstream returns where the pool gets its segments.
func (p *Pool) Upstream() Upstream { return p.cfg.Upstream }
