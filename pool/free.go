package pool

import (
	"fmt"

	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Free gives a block back to the pool at once, for later work of the stream that
// Alloc was given. It panics if the block was freed before or is not of this pool.
// It does not wait, and allocates nothing on the Go heap.
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
	if h.site != 0 || p.dressed() {
		p.undress(b, h, cause)
	}
	f := p.lockFront()
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

// overflow gives a chain of pieces to the core that a front has no room for. The
// front is unlocked, so that the pool may have been closed and emptied meanwhile.
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

// indent is the distance in bytes from the address of a piece to that of its block.
func (p *Pool) indent() uintptr {
	if p.poison != nil {
		return guardBytes
	}
	return 0
}

func (p *Pool) undress(b Block, h *header, cause uint32) {
	if p.poison != nil {
		p.poison.takeBack(h, b.Bytes, &p.sites)
	}
	if h.site != 0 {
		p.sites.give(h.site, h.size)
		h.site = 0
	}
	p.record(trace.Event{Kind: trace.Free, ID: b.ref, Bytes: h.size, Stream: h.stream, Aux: cause})
}

// setAside takes a freed piece past the fronts: to limbo if other streams may
// still use it, else to the core.
func (p *Pool) setAside(i uint32, h *header) {
	if used := h.used.Swap(0); used == 0 || !p.limbo.add(p, i, used) {
		p.retire(i)
	}
	p.ladder.freed()
}

// retire gives a piece to the core. If the pool caches nothing and the segment is
// free, the segment goes to the upstream.
func (p *Pool) retire(i uint32) {
	p.core.headers.at(i).left = 0
	if !p.cfg.Direct && !p.closed.Load() {
		p.core.give(i)
	} else if s, whole := p.core.giveBack(i); whole {
		p.releaseSegment(s)
	} else if p.mapper != nil {
		p.release(MaxBytes)
	}
}
