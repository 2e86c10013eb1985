package pool

import (
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/pool/internal/guard"
)

// A Cacher is an upstream that caches memory itself, such as a pool of the CUDA driver. Its cache
// counts as reserved memory of the device. It gives memory back where a caching pool would: above
// the soft limit, and in FreeAllBlocks and Reclaim. It also does so if another pool or the hard
// limit leaves no room.
type Cacher interface {
	// Keep makes the upstream give memory back by itself, at its sync points, above the given number
	// of reserved bytes.
	Keep(bytes int64) error
	// Trim gives cached memory back until at most keep bytes are reserved, or nothing is cached. It
	// may wait for queued work.
	Trim(keep int64) error
	// Usage returns the counts of the upstream. It does not block.
	Usage() (Usage, error)
}

// Usage is the memory of a [Cacher], in bytes.
type Usage struct {
	Reserved, ReservedPeak int64 // taken from the device, and the most ever
	Used, UsedPeak         int64 // of that handed out, and the most ever
}

// upstreamCache is the cache of the pool's upstream, if it is a [Cacher].
type upstreamCache struct {
	cacher Cacher       // nil: the upstream caches nothing
	mu     sync.Mutex   // held while cached changes
	cached atomic.Int64 // bytes of the cache that the group counts as reserved
}

// reserve counts bytes as taken from the upstream, if the hard limit allows. A Cacher takes them
// out of its cache first.
func (p *Pool) reserve(bytes int64) bool {
	hard := p.group.hard.Load()
	if p.upstream.cacher == nil {
		return p.tracker.Reserve(bytes, hard)
	}
	if hard > 0 {
		p.usage()
	}
	p.setUpstreamCached(func(cached int64) int64 { return max(0, cached-bytes) })
	if p.tracker.Reserve(bytes, hard) {
		return true
	}
	p.trimUpstream(MaxBytes)
	p.setUpstreamCached(func(cached int64) int64 { return max(0, cached-bytes) })
	return p.tracker.Reserve(bytes, hard)
}

// keepsLimit reports whether the device is within its hard limit after an allocation by the
// upstream. A Cacher may have taken more than it was asked for.
func (p *Pool) keepsLimit() bool {
	if p.upstream.cacher == nil || p.group.hard.Load() == 0 {
		return true
	}
	if p.usage(); p.headroom() < 0 {
		p.trimUpstream(MaxBytes)
	}
	return p.headroom() >= 0
}

// usage reads the counts of the upstream and updates its cached bytes. Without a Cacher it returns
// zeros.
func (p *Pool) usage() (u Usage) {
	if p.upstream.cacher == nil {
		return u
	}
	u, err := guard.Value(p.upstream.cacher.Usage)
	if err != nil {
		p.warn(err)
		return u
	}
	p.setUpstreamCached(func(int64) int64 { return max(0, u.Reserved-p.tracker.Reserved()) })
	return u
}

// setUpstreamCached changes the bytes of the upstream's cache that count as reserved memory of the
// group. A closed pool counts none: no other pool can have it trimmed.
func (p *Pool) setUpstreamCached(to func(int64) int64) {
	p.upstream.mu.Lock()
	defer p.upstream.mu.Unlock()
	now := p.upstream.cached.Load()
	next := int64(0)
	if !p.closed.Load() {
		next = to(now)
	}
	if next > now {
		p.group.tracker.Reserve(next-now, 0)
	} else {
		p.group.tracker.Release(now - next)
	}
	p.upstream.cached.Store(next)
}

// trimUpstream makes the upstream give back bytes of its cache, or all of it. It returns how much
// that was.
func (p *Pool) trimUpstream(bytes int64) (released int64) {
	if p.upstream.cacher == nil {
		return 0
	}
	before := p.usage().Reserved
	if err := guard.Error(func() error { return p.upstream.cacher.Trim(max(0, before-bytes)) }); err != nil {
		p.warn(err)
	}
	return max(0, before-p.usage().Reserved)
}

// giveBack gives bytes of cached memory, the pool's and the upstream's, back to the device, or as
// much as there is. It returns how much that was.
func (p *Pool) giveBack(bytes int64) int64 {
	released := p.release(bytes)
	if released < bytes {
		released += p.trimUpstream(bytes - released)
	}
	return released
}

// keepUpstream tells a Cacher the soft limit, if there is one.
func (p *Pool) keepUpstream() {
	soft := p.group.soft.Load()
	if p.upstream.cacher == nil || soft == 0 {
		return
	}
	if err := guard.Error(func() error { return p.upstream.cacher.Keep(soft) }); err != nil {
		p.warn(err)
	}
}
