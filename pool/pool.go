package pool

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Config says how a pool works. The zero value is a caching pool of host memory
// without limits or a collector.
type Config struct {
	Upstream  Upstream        // where segments come from; nil: Host
	Space     pressure.Space  // the memory that the upstream gives, for samples and traces
	Limits    pressure.Limits // neither set: those of the environment, see pressure.LimitsFromEnv; none there: only the upstream refuses
	Collector *gc.Collector   // finds dead arrays; nil: the pool makes one of its own with the policy never, at the first array
	Trace     trace.Sink      // told of every event; nil = off
	Direct    bool            // cache nothing: every block is a segment
	Sites     int64           // note where blocks are allocated: one in so many bytes, at random; 0 = none, 1 = every block, at 0.4 to 1.1 us each; see DefaultSites
	Poison    bool            // notes every site; guard bytes and patterns against stray writes; slow, host memory only
	Warn      func(error)     // told of failures that the pool can live with; nil = nobody is
}

// A Pool hands out memory of one space and keeps what is given back for the
// next request. Its methods are safe for concurrent use, and none that frees
// waits for one that allocates. Make one with [New].
type Pool struct {
	// What every call reads and few write.
	cfg       Config
	poison    *poison
	start     time.Time
	fronts    []front
	frontMask uint32                     // number of fronts - 1
	stocked   numberSet                  // fronts that may have pieces in their racks
	active    numberSet                  // fronts that may have counts of their own
	bypass    atomic.Int32               // not 0: what is freed goes past the fronts: Direct, closed, or somebody climbs
	closed    atomic.Bool                //
	sink      atomic.Pointer[sink]       //
	collect   atomic.Pointer[collecting] //
	hard      atomic.Int64               // bytes; 0 = none
	limit     atomic.Int64               // the budget as last estimated, bytes; 0 = none known
	offsets   [256]atomic.Uint32         // where the goroutines of a hash look, see lockFront

	depot   depot
	core    core
	tracker pressure.Tracker
	budget  pressure.Budget
	once    sync.Mutex // held while collect is made and while sink changes
	ladder  ladder
	limbo   limbo
	sites   sites
}

// Errors that callers branch on.
var (
	ErrOutOfMemory = errors.New("pool: out of memory")     // see OutOfMemoryError
	ErrSize        = errors.New("pool: size out of range") // negative, or above MaxBytes
	ErrClosed      = errors.New("pool: closed")
)

// MaxBytes is the largest size that can be asked for, 64 TiB.
const MaxBytes = 1 << 46

// New returns a pool. It fails if the environment's limits cannot be read, if a
// limit in percent needs a total that the upstream does not tell, and if Poison
// is asked for where the processor cannot address the memory.
func New(cfg Config) (*Pool, error) {
	if cfg.Upstream == nil {
		cfg.Upstream = Host{}
	}
	if cfg.Poison {
		cfg.Sites = 1
	}
	if cfg.Sites < 0 || cfg.Sites > MaxBytes {
		return nil, fmt.Errorf("pool: Sites is %d bytes: want 0 to %d", cfg.Sites, int64(MaxBytes))
	}
	if cfg.Limits == (pressure.Limits{}) {
		limits, err := pressure.LimitsFromEnv(nil)
		if err != nil {
			return nil, fmt.Errorf("pool: %w", err)
		}
		cfg.Limits = limits
	}
	if cfg.Poison && !addressable(cfg) {
		return nil, fmt.Errorf("pool: Poison needs memory that the processor can address, not that of %v", cfg.Space)
	}
	p := &Pool{cfg: cfg, start: time.Now()}
	p.sites.init(cfg.Sites)
	p.budget = pressure.Budget{Limits: cfg.Limits, Info: p.upstreamInfo, Failed: p.warn}
	if err := p.resolve(); err != nil {
		return nil, err
	}
	n := 1 << bits.Len(uint(4*runtime.GOMAXPROCS(0)-1))
	p.fronts = make([]front, n)
	p.frontMask = uint32(n - 1)
	p.stocked, p.active = newNumberSet(n), newNumberSet(n)
	keep, slack := int64(keepMax), int64(slackMax)
	if hard := p.hard.Load(); hard > 0 {
		keep = min(keep, hard/int64(n))
		slack = min(slack, hard/int64(64*n))
	}
	for k := range p.fronts {
		p.fronts[k].number = uint32(k)
		p.fronts[k].keep = keep
		p.fronts[k].unsampled = p.sites.interval()
		p.fronts[k].count = pressure.Shard{Tracker: &p.tracker, Slack: slack}
	}
	if cfg.Poison {
		p.poison = new(poison)
	}
	if cfg.Direct {
		p.bypass.Add(1)
	}
	p.SetTrace(cfg.Trace)
	p.estimate()
	if cfg.Collector != nil {
		p.attach(cfg.Collector, false)
	}
	return p, nil
}

// resolve finds the limits in bytes. A share of a total that is not known is
// an error at the start, when the user is there to hear it.
func (p *Pool) resolve() error {
	l := p.cfg.Limits
	if l.Hard.Percent == 0 && l.Soft.Percent == 0 {
		p.hard.Store(l.Hard.Bytes)
		return nil
	}
	info, err := p.upstreamInfo()
	if err != nil {
		return fmt.Errorf("pool: a limit in percent needs the total of the space: %w", err)
	}
	hard, err := l.Hard.Of(info.Total)
	if err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	// From here on the share is a number: a total that changes later, as that
	// of a control group may, does not move a limit under what is reserved.
	soft, err := l.Soft.Of(info.Total)
	p.cfg.Limits = pressure.Limits{Soft: pressure.Limit{Bytes: soft}, Hard: pressure.Limit{Bytes: hard}}
	p.budget.Limits = p.cfg.Limits
	p.hard.Store(hard)
	return err
}

func (p *Pool) warn(err error) {
	if p.cfg.Warn != nil {
		_ = guard(func() error { p.cfg.Warn(err); return nil }) // there is nobody else to tell
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
		p.recordIn(to, p.sites.markRate(to))
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

// record passes an event that ends now on, if anybody listens.
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
