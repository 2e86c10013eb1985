package pool

import (
	"fmt"
	"strings"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// release gives bytes of cached memory back to the upstream, or all that is cached: whole free
// segments, or whole chunks. It returns how much that was. Memory that the upstream does not take
// stays cached.
func (p *Pool) release(bytes int64) (released int64) {
	if p.mapper != nil {
		return p.unmap(bytes)
	}
	p.group.moving.Add(1)
	defer p.group.moving.Add(-1)
	for _, s := range p.core.evict(bytes) {
		released += p.releaseSegment(s)
	}
	return released
}

// releaseSegment gives a segment back to the upstream that was taken out of the core. It returns
// the bytes that it gave back.
func (p *Pool) releaseSegment(s span) int64 {
	if err := p.upstreamRelease(s); err != nil {
		p.warn(err)
		p.core.restore(s)
		return 0
	}
	p.tracker.Release(s.bytes)
	p.record(trace.Event{Kind: trace.Release, Bytes: s.bytes, Stream: s.stream})
	return s.bytes
}

// FreeAllBlocks gives all cached memory that makes up whole segments back to the upstream. It
// returns the bytes of that memory. Segments that had waited for a stream go back in addition.
func (p *Pool) FreeAllBlocks() int64 {
	p.flight.poll(p)
	p.flush()
	return p.giveBack(MaxBytes)
}

// Reclaim takes the steps of the refusal ladder up to level, needed or not, and gives cached memory
// back to the upstream. It returns the bytes by which reserved memory fell.
func (p *Pool) Reclaim(level Step) int64 {
	before := p.group.tracker.Reserved()
	for s := StepReap; s <= level; s++ {
		if err := p.takeStep(s); err != nil {
			p.warn(err)
		}
	}
	p.FreeAllBlocks()
	return max(0, before-p.group.tracker.Reserved())
}

// Sync calls wait and returns its error. Wait blocks until the device, or another thing that the
// program waits for, is done. Before it, the pool's collector may start a cycle: see
// [gc.Collector.Sync]. After it, cached memory above the soft limit goes back to the upstream.
func (p *Pool) Sync(place *gc.WaitPlace, wait func() error) error {
	var err error
	if c := p.collect.Load(); c != nil {
		err = c.c.Sync(place, wait)
	} else {
		begin := time.Now()
		err = wait()
		p.record(trace.Event{Kind: trace.Sync, Duration: time.Since(begin)})
	}
	p.flight.poll(p)
	p.trimToSoft()
	return err
}

// Synchronize is a sync point that waits for all queued work of the upstream. It makes freed memory
// that waited for other streams ready for use.
func (p *Pool) Synchronize() error {
	return p.Sync(nil, func() error { return p.flight.synchronize(p) })
}

func (p *Pool) trimToSoft() {
	soft := p.group.soft.Load()
	if soft == 0 && p.group.hard.Load() == 0 {
		p.group.estimate() // the budget follows the free bytes of the space
	}
	p.usage()
	over := -p.tracker.Headroom(soft)
	if soft == 0 || over <= 0 {
		return
	}
	p.flush()
	if released := p.giveBack(over); released < over {
		p.group.yield(p, over-released)
	}
}

// Close collects dead arrays and gives cached memory back to the upstream. From now on allocations
// fail with [ErrClosed]. Blocks and arrays that are not freed yet stay usable, and go back to the
// upstream when they are freed. Close reports them to Warn as a [LiveError]. Close the pool before
// its collector. To close twice is harmless.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	p.bypass.Add(1)
	p.once.Lock()
	c := p.collect.Load()
	p.once.Unlock()
	if c != nil {
		if c.owners.Len() > 0 {
			c.c.Collect(policy.TriggerExplicit) // the last cycle that this pool can count on
		}
		p.group.dropGate(c.c)
		if c.private {
			c.c.Close()
		}
	}
	if err := p.flight.synchronize(p); err != nil {
		p.warn(err)
	}
	if s := p.Stats(); s.Live > 0 {
		p.warn(&LiveError{Space: p.cfg.Space, Bytes: s.Live, Blocks: s.Allocs - s.Frees, By: p.Holders(10)})
	}
	p.FreeAllBlocks()
	p.setUpstreamCached(nil)
	p.group.leave(p)
}

// A LiveError tells [Config].Warn that a pool was closed while blocks were handed out. They stay
// usable, and go back to the upstream when they are freed.
type LiveError struct {
	Space  pressure.Space
	Bytes  int64    // live when the pool was closed
	Blocks int64    // and their number
	By     []Holder // the ten largest, if the pool samples sites
}

func (e *LiveError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool: %v pool closed with %v live in %d blocks", e.Space, pressure.Bytes(e.Bytes), e.Blocks)
	for _, h := range e.By {
		fmt.Fprintf(&b, "; %v in %d blocks from %s", pressure.Bytes(h.Bytes), h.Blocks, h.Site)
	}
	return b.String()
}
