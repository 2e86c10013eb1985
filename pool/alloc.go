package pool

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Alloc returns a block of at least the given bytes, for work of stream. Where there are no
// streams, give stream 0. A request for 0 bytes gets a block, too. The memory still has the bytes
// of its last user. If the request does not fit, Alloc climbs the refusal ladder, which may wait
// for a collection. If it fails, the error is an [OutOfMemoryError]. A size out of range fails with
// [ErrSize].
//
// Alloc may start a cycle or wait for one, if the policy of the pool's collector decides so. A
// block from the cache and its free take about 35 ns and allocate nothing on the Go heap (AMD EPYC,
// Go 1.26.8, results/2026-11-21-pool).
func (p *Pool) Alloc(bytes int64, stream uint32) (Block, error) {
	if bytes < 0 || bytes > MaxBytes {
		return Block{}, fmt.Errorf("%w: %d bytes", ErrSize, bytes)
	}
	size := roundUp(max(bytes, 1), quantum)
	if c := p.collect.Load(); c != nil {
		c.gate.Allocating(p.tracker.Live(), size)
	}
	f := p.lockCache()
	i := f.pop(&p.core.headers, size, stream)
	if i == 0 {
		f.mu.Unlock()
		var err error
		if i, err = p.findInTurn(size, stream); i == 0 {
			return Block{}, err
		}
		f = p.lockCache()
	} else {
		f.hits++
	}
	b, sampled := p.handOut(f, i, bytes)
	f.mu.Unlock()
	if sampled || p.sink.Load() != nil {
		p.instrument(b, i, sampled)
	}
	return b, nil
}

// handOut makes a block of piece i, and reports whether its allocation site is to be noted. The
// caller holds f.
func (p *Pool) handOut(f *cache, i uint32, bytes int64) (b Block, sampled bool) {
	h := p.core.headers.at(i)
	f.count.Take(h.size)
	if f.unsampled -= h.size; f.unsampled < 0 {
		f.unsampled = p.sites.interval()
		sampled = true
	}
	return Block{Addr: h.addr, Bytes: bytes, ref: uint64(h.gen.Add(1))<<32 | uint64(i)}, sampled
}

// instrument notes the allocation site of b if it is sampled, and records b. That is rare, so the
// code is apart from the fast path.
func (p *Pool) instrument(b Block, i uint32, sampled bool) {
	h := p.core.headers.at(i)
	if sampled {
		h.site = p.sites.take(h.size)
	}
	if s := p.begun(); s != nil {
		p.recordAlloc(s, s.object(i), h, uint32(b.ref>>32), p.sites.labelIn(s, h.site))
	}
}

// findInTurn looks for a piece wherever there may be one, and climbs the ladder if it finds none.
// If others are in line for the ladder, the caller gets in line first.
func (p *Pool) findInTurn(size int64, stream uint32) (i uint32, err error) {
	if p.closed.Load() {
		return 0, ErrClosed
	}
	var t turn
	defer func() { p.leaveLine(t) }()
	if p.ladder.waiting.Load() > 0 {
		t = p.getInLine()
	}
	if i, err = p.find(size, stream); i != 0 {
		return i, nil
	}
	k := p.collect.Load()
	if k != nil {
		k.gate.Refused(size)
		// A wait for the running cycle is no refusal: it was started before the memory ran out.
		for try := 0; try < awaitMax && k.c.Wait(); try++ {
			if i, err = p.find(size, stream); i != 0 {
				return i, nil
			}
		}
	}
	p.ladder.climbed.Add(1)
	if t == nil {
		t = p.getInLine()
		if i, err = p.find(size, stream); i != 0 {
			return i, nil
		}
	}
	if k != nil {
		k.gate.Refused(size)
	}
	return p.climb(size, stream, err)
}

const awaitMax = 4 // waits for a cycle: other goroutines may take the memory that the first has freed

// find looks for a piece without a collection: in the cache, then at the upstream. If the upstream
// refuses, the other pools of the device give cached memory back and the upstream is asked again.
// Without a piece, find returns 0 and the upstream's error.
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

// findCached looks for a piece in the depot, in other caches and in the core.
func (p *Pool) findCached(size int64, stream uint32) uint32 {
	if p.cfg.Direct {
		return 0
	}
	f := p.lockCache()
	i := p.restock(f, size, stream)
	if i == 0 {
		i = p.steal(f, size, stream)
	}
	f.mu.Unlock()
	if i == 0 {
		i = p.core.take(size, stream)
	}
	if i == 0 && p.flight.poll(p) {
		i = p.core.take(size, stream)
	}
	if i == 0 && p.flush() > 0 {
		i = p.core.take(size, stream)
	}
	return i
}

// grow takes memory from the upstream and cuts a piece out of it. Bytes are counted before they are
// taken, so the hard limit holds at every moment. If they do not fit, cached memory makes room for
// the missing bytes, if there is enough of it.
func (p *Pool) grow(size int64, stream uint32) (i uint32, err error) {
	if p.mapper != nil {
		return p.mapMore(size, stream)
	}
	sizes := segmentSizes(size, p.group.hard.Load())
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
	p.group.estimate()
	p.group.moving.Add(1)
	defer p.group.moving.Add(-1)
	if !p.reserve(bytes) {
		return 0, errHardLimit
	}
	addr, err := guard.Value(func() (uintptr, error) { return p.cfg.Upstream.Allocate(bytes, stream) })
	if err != nil {
		p.tracker.Release(bytes)
		return 0, err
	}
	p.record(trace.Event{Kind: trace.Reserve, Bytes: bytes, Stream: stream})
	if !p.keepsLimit() {
		p.releaseSegment(span{addr: addr, bytes: bytes, stream: stream})
		p.trimUpstream(MaxBytes)
		return 0, errHardLimit
	}
	return p.core.addSegment(addr, bytes, size, stream), nil
}

// Free gives a block back to the pool at once, for later work of the stream that Alloc was given.
// It panics if the block was freed before or is not of this pool. It does not wait, and allocates
// nothing on the Go heap.
func (p *Pool) Free(b Block) { p.free(b, trace.FreeExplicit) }

func (p *Pool) free(b Block, cause uint32) {
	i := uint32(b.ref)
	h := p.core.headers.find(i)
	if h == nil {
		panic(fmt.Sprintf("pool: free of a block that is not of this pool: %v", b))
	}
	gen := uint32(b.ref >> 32)
	if gen%2 == 0 || h.gen.Load() == gen && h.addr != b.Addr || !h.gen.CompareAndSwap(gen, gen+1) {
		p.badFree(b, h)
	}
	if h.site != 0 || p.sink.Load() != nil {
		p.instrumentFree(i, h, cause)
	}
	f := p.lockCache()
	f.count.Give(h.size)
	if p.bypass.Load() != 0 || h.used.Load() != 0 {
		f.mu.Unlock()
		p.setAside(i, h)
		return
	}
	rest, full := f.push(&p.core.headers, i)
	if full && p.depot.put(&p.core.headers, rest) {
		rest = 0
	}
	p.stock(f)
	f.mu.Unlock()
	if rest != 0 {
		p.overflow(rest)
	}
	if p.ladder.waiters.Load() != 0 {
		p.ladder.freed()
	}
}

// overflow gives a chain of pieces to the core that a cache has no room for. The cache is unlocked,
// so that the pool may have been closed and emptied meanwhile.
func (p *Pool) overflow(chain uint32) {
	p.core.give(chain)
	if p.closed.Load() {
		p.release(MaxBytes)
	}
}

func (p *Pool) badFree(b Block, h *header) {
	if gen := uint32(b.ref >> 32); gen%2 == 1 && int32(h.gen.Load()-gen) > 0 {
		panic(fmt.Sprintf("pool: double free, or a block of another pool: %v at %#x (block %#x)", pressure.Bytes(b.Bytes), b.Addr, b.ref))
	}
	panic(fmt.Sprintf("pool: free of a block that is not of this pool: %v", b))
}

func (p *Pool) instrumentFree(i uint32, h *header, cause uint32) {
	if h.site != 0 {
		p.sites.add(h.site, -1, h.size)
		h.site = 0
	}
	if s := p.begun(); s != nil {
		x := s.object(i)
		p.recordFree(s, x, x.id.Load(), cause)
	}
}

// setAside takes a freed piece past the caches: to those in flight if other streams may still use
// it, else to the core.
func (p *Pool) setAside(i uint32, h *header) {
	if used := h.used.Swap(0); used == 0 || !p.flight.add(p, i, used) {
		p.retire(i)
	}
	p.ladder.freed()
}

// retire gives a piece to the core. If the pool caches nothing and the segment is free, the segment
// goes to the upstream.
func (p *Pool) retire(i uint32) {
	p.core.headers.at(i).left = 0
	if !p.cfg.Direct && !p.closed.Load() {
		p.core.give(i)
		return
	}
	p.group.moving.Add(1)
	defer p.group.moving.Add(-1)
	if s, whole := p.core.giveBack(i); whole {
		p.releaseSegment(s)
	} else if p.mapper != nil {
		p.release(MaxBytes)
	}
}
