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
	Limits    pressure.Limits // none: only the upstream refuses
	Collector *gc.Collector   // finds dead arrays; nil: the pool makes one of its own with the policy never, at the first array
	Trace     trace.Sink      // told of every event, from many goroutines at once; nil = off
	Direct    bool            // cache nothing: every block is a segment
	Sites     bool            // note where blocks are allocated, for reports; about 0.3 us each
	Poison    bool            // implies Sites; guard bytes and patterns against stray writes; slow, host memory only
	Warn      func(error)     // told of failures that the pool can live with; nil = nobody is
}

// A Pool hands out memory of one space and keeps what is given back for the
// next request. Its methods are safe for concurrent use, and none that frees
// waits for one that allocates. Make one with [New].
type Pool struct {
	cfg        Config
	fronts     []front
	frontShift uint
	core       core
	tracker    pressure.Tracker
	budget     pressure.Budget
	hard       atomic.Int64 // bytes; 0 = none
	start      time.Time
	sink       atomic.Pointer[sink]
	collect    atomic.Pointer[collecting]
	once       sync.Mutex // guards the making of collect
	ladder     ladder
	limbo      limbo
	poison     *poison
	limit      atomic.Int64 // the budget as last estimated, bytes; 0 = none known
	closed     atomic.Bool
	bypass     atomic.Int32 // not 0: what is freed goes past the fronts: Direct, closed, or somebody climbs
}

// Errors that callers branch on.
var (
	ErrOutOfMemory = errors.New("out of memory")           // see OutOfMemoryError
	ErrSize        = errors.New("pool: size out of range") // negative, or above MaxBytes
	ErrClosed      = errors.New("pool: closed")
)

// MaxBytes is the largest size that can be asked for, 64 TiB.
const MaxBytes = 1 << 46

// New returns a pool. The only errors are limits that cannot be resolved.
func New(cfg Config) (*Pool, error) {
	if cfg.Upstream == nil {
		cfg.Upstream = Host{}
	}
	cfg.Sites = cfg.Sites || cfg.Poison
	if cfg.Poison && !addressable(cfg) {
		return nil, fmt.Errorf("pool: Poison needs memory that the processor can address, not that of %v", cfg.Space)
	}
	p := &Pool{cfg: cfg, start: time.Now()}
	p.budget = pressure.Budget{Limits: cfg.Limits, Info: cfg.Upstream.Info, Failed: p.warn}
	if err := p.resolve(); err != nil {
		return nil, err
	}
	n := 1 << bits.Len(uint(4*runtime.GOMAXPROCS(0)-1))
	p.fronts = make([]front, n)
	p.frontShift = uint(64 - bits.Len(uint(n-1)))
	keep, slack := int64(keepMax), int64(slackMax)
	if hard := p.hard.Load(); hard > 0 {
		keep = min(keep, hard/int64(8*n))
		slack = min(slack, hard/int64(64*n))
	}
	for k := range p.fronts {
		p.fronts[k].keep = keep
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
		p.attach(cfg.Collector, false, false)
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
	info, err := p.cfg.Upstream.Info()
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
		p.cfg.Warn(err)
	}
}

// Alloc returns a block of at least bytes, for work of the stream given, which
// is 0 where there are none. Zero bytes get a block of their own, too. The
// memory is as its last user left it. If it does not fit, Alloc climbs the
// refusal ladder, which may wait for a collection, and then fails with an
// [OutOfMemoryError]. A size out of range fails with [ErrSize].
//
// If the policy of the pool's collector says so, Alloc starts a cycle, or waits
// for one. A block from the cache takes about 20 ns and allocates nothing.
func (p *Pool) Alloc(bytes int64, stream uint32) (Block, error) {
	if bytes < 0 || bytes > MaxBytes {
		return Block{}, fmt.Errorf("%w: %d bytes", ErrSize, bytes)
	}
	size := roundUp(max(bytes, 1), quantum)
	if p.poison != nil {
		size += 2 * guardBytes
	}
	if c := p.collect.Load(); c != nil {
		c.gate.Allocating(p.tracker.Live(), size)
	}
	f := p.lockFront()
	i := f.pop(&p.core.headers, size, stream)
	if i == 0 {
		f.mu.Unlock()
		return p.allocMissed(bytes, size, stream)
	}
	f.hits++
	b := p.hand(f, i, bytes)
	f.mu.Unlock()
	if p.dressed() {
		return p.dress(b, i), nil
	}
	return b, nil
}

// hand makes piece i a block. The caller holds f.
func (p *Pool) hand(f *front, i uint32, bytes int64) Block {
	h := p.core.headers.at(i)
	if p.cfg.Sites {
		h.site = here()
	}
	f.count.Take(h.size)
	f.classes[class(h.size)]++
	return Block{Addr: h.addr, Bytes: bytes, ref: uint64(h.gen.Add(1))<<32 | uint64(i)}
}

// dressed says whether blocks get more than an address: a rare case, kept off
// the fast path.
func (p *Pool) dressed() bool {
	return p.sink.Load() != nil || p.poison != nil
}

func (p *Pool) dress(b Block, i uint32) Block {
	h := p.core.headers.at(i)
	if p.poison != nil {
		p.poison.handOut(h, b.Bytes)
		b.Addr += guardBytes
	}
	p.record(trace.Event{Kind: trace.Alloc, ID: b.ref, Bytes: h.size, Stream: h.stream})
	return b
}

// allocMissed is Alloc when the front's rack is empty.
func (p *Pool) allocMissed(bytes, size int64, stream uint32) (Block, error) {
	if p.closed.Load() {
		return Block{}, ErrClosed
	}
	if p.bypass.Load() != 0 {
		p.awaitClimber()
	}
	i, err := p.find(size, stream)
	if i == 0 {
		i, err = p.awaitCycle(size, stream, err)
	}
	if i == 0 {
		i, err = p.climb(size, stream, err)
	}
	if i == 0 {
		return Block{}, err
	}
	f := p.lockFront()
	b := p.hand(f, i, bytes)
	f.mu.Unlock()
	if p.dressed() {
		return p.dress(b, i), nil
	}
	return b, nil
}

// find looks for a piece wherever that costs no collection: other fronts, the
// core, the upstream. It returns 0 and the upstream's error, if there was one.
func (p *Pool) find(size int64, stream uint32) (uint32, error) {
	if p.cfg.Direct {
		return p.grow(size, stream)
	}
	f := p.lockFront()
	i := p.steal(f, size, stream)
	f.mu.Unlock()
	if i != 0 {
		return i, nil
	}
	if i := p.core.take(size, stream); i != 0 {
		return i, nil
	}
	if p.limbo.poll(p) || p.flush() > 0 {
		if i := p.core.take(size, stream); i != 0 {
			return i, nil
		}
	}
	return p.grow(size, stream)
}

// grow takes a new segment from the upstream and cuts a piece out of it. Bytes
// are counted before they are taken, so that the hard limit holds at every
// moment; cached segments make room if they must.
func (p *Pool) grow(size int64, stream uint32) (i uint32, err error) {
	sizes := segmentSizes(size, p.hard.Load())
	tries := sizes[:]
	if p.cfg.Direct {
		tries = []int64{roundUp(size, pageRound)}
	}
	for k, bytes := range tries {
		if k > 0 && bytes == tries[k-1] {
			continue
		}
		if i, err = p.growBy(bytes, size, stream); i != 0 {
			return i, nil
		}
	}
	// The tightest segment does not fit: trade cached segments for it.
	tight := sizes[2]
	if p.release(tight) > 0 {
		if i, err = p.growBy(tight, size, stream); i != 0 {
			return i, nil
		}
		if p.release(MaxBytes) > 0 {
			i, err = p.growBy(tight, size, stream)
		}
	}
	return i, err
}

var errHardLimit = errors.New("hard limit")

func (p *Pool) growBy(bytes, size int64, stream uint32) (uint32, error) {
	p.estimate()
	if !p.tracker.Reserve(bytes, p.hard.Load()) {
		return 0, errHardLimit
	}
	addr, err := p.upstreamAllocate(bytes, stream)
	if err != nil {
		p.tracker.Release(bytes)
		return 0, err
	}
	if p.poison != nil {
		p.poison.fill(addr, bytes)
	}
	p.record(trace.Event{Kind: trace.Reserve, Bytes: bytes, Stream: stream})
	return p.core.addSegment(addr, bytes, size, stream), nil
}

// Free gives a block back to the pool at once, for later work of the block's
// stream. It panics if the block is not one of this pool's that is handed out:
// a block can be given back once. It does not wait, and allocates nothing.
func (p *Pool) Free(b Block) { p.free(b, trace.FreeExplicit) }

func (p *Pool) free(b Block, cause uint32) {
	i := uint32(b.ref)
	h := p.core.headers.find(i)
	if h == nil {
		panic(fmt.Sprintf("pool: free of a block that is not of this pool: %v", b))
	}
	gen := uint32(b.ref >> 32)
	if gen%2 == 0 || h.gen.Load() == gen && h.addr != b.Addr-p.indent() || !h.gen.CompareAndSwap(gen, gen+1) {
		p.badFree(b, h)
	}
	if p.dressed() {
		p.undress(b, h, cause)
	}
	f := p.lockFront()
	f.count.Give(h.size)
	if p.bypass.Load() != 0 || h.used.Load() != 0 {
		f.mu.Unlock()
		p.setAside(i, h)
		return
	}
	rest := f.push(&p.core.headers, i)
	f.mu.Unlock()
	if rest != 0 {
		p.core.give(rest)
		if p.closed.Load() { // since this began
			p.release(MaxBytes)
		}
	}
	if p.ladder.waiters.Load() != 0 {
		p.ladder.freed()
	}
}

func (p *Pool) badFree(b Block, h *header) {
	if gen := uint32(b.ref >> 32); gen%2 == 1 && int32(h.gen.Load()-gen) > 0 {
		panic(fmt.Sprintf("pool: double free, or a block of another pool: %v at %#x (block %#x)", pressure.Bytes(b.Bytes), b.Addr, b.ref))
	}
	panic(fmt.Sprintf("pool: free of a block that is not of this pool: %v", b))
}

// indent is the distance from a piece's address to its block's.
func (p *Pool) indent() uintptr {
	if p.poison != nil {
		return guardBytes
	}
	return 0
}

func (p *Pool) undress(b Block, h *header, cause uint32) {
	if p.poison != nil {
		p.poison.takeBack(h, b.Bytes)
	}
	p.record(trace.Event{Kind: trace.Free, ID: b.ref, Bytes: h.size, Stream: h.stream, Aux: cause})
}

// setAside takes a piece past the fronts: to the upstream if the pool caches
// nothing, or to limbo until other streams have done with it.
func (p *Pool) setAside(i uint32, h *header) {
	if used := h.used.Swap(0); used == 0 || !p.limbo.add(p, i, used) {
		p.retire(i)
	}
	p.ladder.freed()
}

// retire gives a piece to the core and, if the pool caches nothing, its segment
// to the upstream.
func (p *Pool) retire(i uint32) {
	p.core.headers.at(i).left = 0
	if !p.cfg.Direct && !p.closed.Load() {
		p.core.give(i)
	} else if s, whole := p.core.giveBack(i); whole {
		p.releaseSegment(s)
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

// SetTrace sends events from now on to s; nil stops that. The sink is called
// from many goroutines at once. Times are of the clock of the pool's collector, or
// start when the pool was made; a [trace.Recorder] uses its own clock.
func (p *Pool) SetTrace(s trace.Sink) {
	if s == nil {
		p.sink.Store(nil)
		return
	}
	_, stamps := s.(*trace.Recorder)
	p.sink.Store(&sink{s, stamps})
}

// A sink takes the events of a pool.
type sink struct {
	trace.Sink
	stamps bool // it notes the time itself
}

// record passes an event that ends now on, if anybody listens.
func (p *Pool) record(e trace.Event) {
	s := p.sink.Load()
	if s == nil {
		return
	}
	e.Space = p.cfg.Space
	if !s.stamps {
		e.Time = int64(p.now() - e.Duration)
	}
	s.Record(e)
}

// now is the clock of events: the collector's, so that both agree.
func (p *Pool) now() time.Duration {
	if c := p.collect.Load(); c != nil {
		return c.c.Now()
	}
	return time.Since(p.start)
}

// Space returns the memory that the pool hands out.
func (p *Pool) Space() pressure.Space { return p.cfg.Space }
