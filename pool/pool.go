package pool

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Config says how a pool works. The zero value is a caching pool of host memory,
// with the limits of the environment and no collector.
type Config struct {
	Upstream   Upstream        // where segments come from; nil: Host
	Space      pressure.Space  // the memory that the upstream gives, for samples and traces
	Limits     pressure.Limits // of the device while this pool is open, for all its pools, see Sharer: of several the smallest; one that no pool sets is that of the environment, see pressure.Limits.OrFromEnv; none there: only the upstream refuses
	Collector  *gc.Collector   // finds dead arrays; nil: at the first array the pool makes a private one with the policy never
	Trace      trace.Sink      // told of every event; nil = off
	Direct     bool            // cache nothing: every block is a segment of its own
	Chunk      int64           // over a Mapper: bytes of a chunk, a power of two; 0 = the 256th part of the limit, at most 128 MiB
	Sites      int64           // mean bytes between two blocks whose allocation site is noted; 0 = none is, 1 = all are, at 0.4 to 1.1 us each; see DefaultSites and SitesByLimit
	ExactPeaks bool            // make LivePeak exact, for about 10 ns more an allocation, and contention between processors
	Poison     bool            // find stray writes by guard bytes and patterns, and note every site; slow, host memory only
	Warn       func(error)     // called with failures after which the pool goes on; nil = they are not told
}

// A Pool hands out memory of one space and keeps freed memory for the
// next request. Its methods are safe for concurrent use. A call that frees never
// waits for a call that allocates. Make a Pool with [New].
type Pool struct {
	// These fields are read by every call and rarely written.
	cfg       Config
	poison    *poison
	mapper    Mapper // nil: every segment comes from Upstream.Allocate
	caches    []cache
	cacheMask uint32                     // number of caches - 1
	stocked   numberSet                  // caches that may have pieces in their magazines
	active    numberSet                  // caches that may have counts that the tracker lacks
	bypass    atomic.Int32               // above 0: freed pieces skip the caches, because of Direct, Close or a climber
	closed    atomic.Bool                // Close was called
	sink      atomic.Pointer[sink]       // takes the events; nil = nobody does
	collect   atomic.Pointer[collecting] // the collector; nil = none yet
	hard      atomic.Int64               // hard limit of the group in bytes; 0 = none
	cacher    Cacher                     // the upstream, if it caches memory itself
	group     *group                     // the pools that share the memory, at least this one
	own, env  pressure.Limits            // in bytes: those of the configuration, and with the environment's; own is guarded by group.mu
	offsets   [256]atomic.Uint32         // for each hash of a stack, how far from its first cache it has moved, see lockCache

	depot   depot
	core    core
	tracker tracker
	once    sync.Mutex // held while collect is made and while sink changes

	caching        sync.Mutex   // held while upstreamCached changes
	upstreamCached atomic.Int64 // bytes of the upstream's cache that the group counts as reserved
	ladder         ladder
	flight         inFlight
	sites          sites
}

// Errors that callers branch on.
var (
	ErrOutOfMemory = errors.New("pool: out of memory")     // see OutOfMemoryError
	ErrSize        = errors.New("pool: size out of range") // negative, or above MaxBytes
	ErrClosed      = errors.New("pool: closed")
)

// MaxBytes is the largest size that can be asked for, 64 TiB.
const MaxBytes = 1 << 46

// New returns a pool. It fails if a limit of the configuration is a share of a total that the upstream does not know, or a soft one
// of a pool that is Direct, and if Poison is set for memory that the processor cannot address. A
// limit of the environment that cannot be obeyed is said in the log instead, and counts as not set.
func New(cfg Config) (*Pool, error) {
	if cfg.Upstream == nil {
		cfg.Upstream = Host{}
	}
	if cfg.Poison {
		cfg.Sites = 1
	}
	if cfg.Sites < SitesByLimit || cfg.Sites > MaxBytes {
		return nil, fmt.Errorf("pool: Sites is %d bytes: want 0 to %d, or SitesByLimit", cfg.Sites, int64(MaxBytes))
	}
	_, fences := cfg.Upstream.(Fencer)
	if _, waits := cfg.Upstream.(Synchronizer); fences && !waits {
		return nil, fmt.Errorf("pool: upstream %T is a Fencer but no Synchronizer: memory that a fence cannot be had for would be used again at once", cfg.Upstream)
	}
	if cfg.Poison && !addressable(cfg) {
		return nil, fmt.Errorf("pool: Poison needs memory that the processor can address, not that of %v", cfg.Space)
	}
	p := &Pool{cfg: cfg}
	p.cacher, _ = cfg.Upstream.(Cacher)
	var err error
	if p.own, err = p.inBytes(cfg.Limits); err != nil {
		return nil, err
	}
	p.env = p.own.OrFromEnv(p.place(), p.inBytes)
	n := 1 << bits.Len(uint(4*runtime.GOMAXPROCS(0)-1))
	p.caches = make([]cache, n)
	p.cacheMask = uint32(n - 1)
	p.stocked, p.active = newNumberSet(n), newNumberSet(n)
	for k := range p.caches {
		p.caches[k].number = uint32(k)
		p.caches[k].count = shard{tracker: &p.tracker}
	}
	if cfg.Poison {
		p.poison = new(poison)
	}
	if cfg.Direct {
		p.bypass.Add(1)
	}
	p.joinGroup()
	p.startSites()
	if err := p.openMapper(); err != nil {
		p.group.leave(p)
		return nil, err
	}
	p.sizeCaches(p.hard.Load())
	p.keepUpstream()
	p.SetTrace(cfg.Trace)
	p.estimate()
	if cfg.Collector != nil {
		p.attach(cfg.Collector, false)
	}
	return p, nil
}

func (p *Pool) warn(err error) {
	if p.cfg.Warn != nil {
		_ = guard.Error(func() error { p.cfg.Warn(err); return nil }) // there is nobody else to tell
	}
}

// Memory returns the bytes of a block, or nil if the processor cannot address
// them. The slice must not be used once the block is given back.
func (p *Pool) Memory(b Block) []byte {
	if !addressable(p.cfg) || b.ref == 0 {
		return nil
	}
	return memory(b.Addr, b.Bytes)
}

// SetTrace sends events from now on to s; nil stops that. If the pool made its
// collector itself, the collector's events go there too.
func (p *Pool) SetTrace(s trace.Sink) {
	if s == nil {
		p.setSink(nil)
		return
	}
	to := &sink{s}
	p.setSink(to)
	if p.sites.rate > 1 {
		p.recordIn(to, trace.Event{Kind: trace.Mark, Bytes: p.sites.rate, Aux: to.Label(trace.SiteRateLabel)})
	}
}

// setSink changes the sink of the pool and of the collector that is its own.
func (p *Pool) setSink(to *sink) {
	p.once.Lock()
	defer p.once.Unlock()
	p.sink.Store(to)
	if c := p.collect.Load(); c != nil && c.private {
		c.c.SetRecorder(to.orNil())
	}
}

// A sink takes the events of a pool. Nil is none.
type sink struct{ trace.Sink }

func (s *sink) orNil() trace.Sink {
	if s == nil {
		return nil
	}
	return s.Sink
}

// record sends an event that ends now, if there is a sink.
func (p *Pool) record(e trace.Event) {
	if s := p.sink.Load(); s != nil {
		p.recordIn(s, e)
	}
}

func (p *Pool) recordIn(s *sink, e trace.Event) {
	e.Space = p.cfg.Space
	e.Time = int64(s.Now() - e.Duration)
	s.Record(e)
}

// Space returns the memory that the pool hands out.
func (p *Pool) Space() pressure.Space { return p.cfg.Space }

// Upstream returns where the pool gets its segments.
func (p *Pool) Upstream() Upstream { return p.cfg.Upstream }
