package pool

import (
	"fmt"
	"time"
)

// Books says what does not add up in a pool that nobody uses: live is what blocks hold, reserved what pieces have memory for, blocks are
// what was handed out and not given back, and the pools of a device and their upstreams' caches are together what the device has
// reserved. Each test's pools are looked at before they are closed. Somebody may be in the middle of something: it has to be right at last.
func (p *Pool) Books() (err error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if err = p.wrong(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// Closed reports whether Close was called: what a closed pool has out is reserved memory of the device until it is freed.
func (p *Pool) Closed() bool { return p.closed.Load() }

func (p *Pool) wrong() error {
	if err := p.Check(); err != nil {
		return err
	}
	s := p.Stats()
	var live, blocks, held int64
	p.core.mu.Lock()
	for n := uint32(1); n <= p.core.headers.used; n++ {
		h := p.core.headers.at(spread(n))
		if h.size == 0 || h.hole {
			continue
		}
		held += h.size
		if h.gen.Load()%2 == 1 {
			live += h.size
			blocks++
		}
	}
	p.core.mu.Unlock()
	var devices int64
	for _, q := range p.group.members() {
		devices += q.tracker.Reserved() + q.upstreamCached.Load()
	}
	known := p.cacher != nil && !p.closed.Load()
	if known {
		_, err := p.cacher.Usage()
		known = err == nil // else nobody knows what it has
	}
	switch {
	case live != s.Live || blocks != s.Allocs-s.Frees:
		return fmt.Errorf("%d blocks have %d bytes, counted %d of %d", blocks, live, s.Allocs-s.Frees, s.Live)
	case held != s.Reserved:
		return fmt.Errorf("pieces have %d bytes, reserved are %d", held, s.Reserved)
	case s.Allocated-s.Freed != s.Live || s.LivePeak > s.ReservedPeak || s.ReservedPeak < s.Reserved:
		return fmt.Errorf("counts do not add up: %+v", s)
	case p.group.past.Load() == 0 && devices != p.group.tracker.Reserved():
		return fmt.Errorf("pools and upstreams hold %d bytes of a device, which has %d reserved", devices, p.group.tracker.Reserved())
	case known && s.Reserved+p.upstreamCached.Load() != max(s.Reserved, s.Upstream.Reserved):
		return fmt.Errorf("the upstream has %d bytes, counted %d and %d in its cache", s.Upstream.Reserved, s.Reserved, p.upstreamCached.Load())
	}
	return nil
}

// OneCache leaves the pool one cache, so that what a goroutine frees is where it looks next, whatever stack it has.
func (p *Pool) OneCache() {
	p.flush()
	p.caches, p.cacheMask = p.caches[:1], 0
	p.sizeCaches(p.hard.Load())
}

// SlotOf says which sizes and streams share a magazine.
var SlotOf = slotOf
