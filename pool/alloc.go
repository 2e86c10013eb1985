package pool

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/trace"
)

// Alloc returns a block of at least the given bytes, for work of stream; give
// stream 0 where there are no streams. A request for 0 bytes gets a block, too.
// The memory holds what its last user left there. If the request does not fit,
// Alloc climbs the refusal ladder, which may wait for a collection, and may fail
// with an [OutOfMemoryError]. A size out of range fails with [ErrSize].
//
// Alloc may start a cycle or wait for one, if the policy of the pool's collector
// decides so. To take a block from the cache and free it takes about 35 ns and
// allocates nothing on the Go heap (AMD EPYC, Go 1.26.8, results/2026-11-21-pool).
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
	b, sampled := p.hand(f, i, bytes)
	f.mu.Unlock()
	if sampled || p.dressed() {
		return p.dress(b, i, sampled), nil
	}
	return b, nil
}

// hand makes a block of piece i, and reports whether its allocation site is to be
// noted. The caller holds f.
func (p *Pool) hand(f *front, i uint32, bytes int64) (b Block, sampled bool) {
	h := p.core.headers.at(i)
	f.count.Take(h.size)
	f.classes[class(h.size)]++
	if f.unsampled -= h.size; f.unsampled < 0 {
		f.unsampled = p.sites.interval()
		sampled = true
	}
	return Block{Addr: h.addr, Bytes: bytes, ref: uint64(h.gen.Add(1))<<32 | uint64(i)}, sampled
}

// dressed reports whether each block is recorded or guarded. That is rare, so the
// code for it is apart from the fast path.
func (p *Pool) dressed() bool {
	return p.sink.Load() != nil || p.poison != nil
}

func (p *Pool) dress(b Block, i uint32, sampled bool) Block {
	h := p.core.headers.at(i)
	if sampled {
		h.site = p.sites.take(h.size)
	}
	if p.poison != nil {
		p.poison.handOut(h, b.Bytes)
		b.Addr += guardBytes
	}
	if s := p.sink.Load(); s != nil {
		p.recordIn(s, trace.Event{Kind: trace.Alloc, ID: b.ref, Bytes: h.size, Stream: h.stream, Aux: p.sites.labelIn(s, h.site)})
	}
	return b
}

// allocMissed is the rest of Alloc when the front's rack is empty.
func (p *Pool) allocMissed(bytes, size int64, stream uint32) (Block, error) {
	if p.closed.Load() {
		return Block{}, ErrClosed
	}
	i, err := p.findInTurn(size, stream)
	if i == 0 {
		return Block{}, err
	}
	f := p.lockFront()
	b, sampled := p.hand(f, i, bytes)
	f.mu.Unlock()
	if sampled || p.dressed() {
		return p.dress(b, i, sampled), nil
	}
	return b, nil
}

// findInTurn looks for a piece wherever there may be one. If others are in line
// for the ladder, the caller gets in line first.
func (p *Pool) findInTurn(size int64, stream uint32) (i uint32, err error) {
	var t turn
	defer func() { p.leaveLine(t) }()
	if p.ladder.waiting.Load() > 0 {
		t = p.getInLine()
	}
	if i, err = p.find(size, stream); i == 0 {
		p.refused(size)
		i, err = p.awaitCycle(size, stream, err)
	}
	if i != 0 {
		return i, nil
	}
	p.ladder.climbed.Add(1)
	if t == nil {
		t = p.getInLine()
		if i, err = p.find(size, stream); i != 0 {
			return i, nil
		}
	}
	p.refused(size)
	return p.climb(size, stream, err)
}

// refused has the policy told that size bytes did not fit.
func (p *Pool) refused(size int64) {
	if c := p.collect.Load(); c != nil {
		c.gate.Refused(size)
	}
}

// find looks for a piece without a collection: in the cache, at the upstream, and
// at the upstream again once the other pools of the device have given cached memory
// back. If there is none it returns 0 and the error of the upstream.
func (p *Pool) find(size int64, stream uint32) (uint32, error) {
	if i := p.findCached(size, stream); i != 0 {
		return i, nil
	}
	i, err := p.grow(size, stream)
	for _, bytes := range []int64{roundUp(size, segmentRound), MaxBytes} {
		if i == 0 && p.group.yield(p, bytes) > 0 {
			i, err = p.grow(size, stream)
		}
	}
	return i, err
}

// findCached looks for a piece in the depot, in other fronts and in the core.
func (p *Pool) findCached(size int64, stream uint32) uint32 {
	if p.cfg.Direct {
		return 0
	}
	f := p.lockFront()
	i := p.restock(f, size, stream)
	if i == 0 {
		i = p.steal(f, size, stream)
	}
	f.mu.Unlock()
	if i == 0 {
		i = p.core.take(size, stream)
	}
	if i == 0 && (p.limbo.poll(p) || p.flush() > 0) {
		i = p.core.take(size, stream)
	}
	return i
}

// grow takes memory from the upstream and cuts a piece out of it. Bytes are
// counted before they are taken, so that the hard limit holds at every moment. If
// they do not fit, cached memory makes room: what is lacking, and only if there is
// so much.
func (p *Pool) grow(size int64, stream uint32) (i uint32, err error) {
	if p.mapper != nil {
		return p.mapMore(size, stream)
	}
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
	tight := tries[len(tries)-1]
	lacking := tight
	if err == errHardLimit {
		lacking -= p.headroom()
	}
	if p.core.wholes() >= lacking && p.release(lacking) >= lacking {
		if i, err = p.growBy(tight, size, stream); i != 0 {
			return i, nil
		}
	}
	if err != errHardLimit && p.release(MaxBytes) > 0 { // others use the upstream, too
		i, err = p.growBy(tight, size, stream)
	}
	return i, err
}

var errHardLimit = errors.New("hard limit")

func (p *Pool) growBy(bytes, size int64, stream uint32) (uint32, error) {
	p.estimate()
	if !p.reserve(bytes) {
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
	if !p.keepsLimit() {
		p.releaseSegment(span{addr: addr, bytes: bytes, stream: stream})
		p.trimUpstream(MaxBytes)
		return 0, errHardLimit
	}
	return p.core.addSegment(addr, bytes, size, stream), nil
}
