package pool

import (
	"fmt"

	"github.com/eagergc/eagergc/trace"
)

// A Divider is an upstream that takes memory back in parts. If there is no room
// for a large block, the pool gives it the free parts of segments that are partly
// in use. Without a Divider, a segment in which one small block is live serves
// only sizes that fit beside that block.
type Divider interface {
	// Part returns the largest part of the memory from addr to addr + bytes that
	// Release would take, or 0 bytes if there is none. The memory lies within what
	// one Allocate returned. Part does not block.
	Part(addr uintptr, bytes int64) (part uintptr, size int64)
}

// divide gives parts of segments that are in use back to an upstream that takes
// parts, out of the smallest free piece that suffices or else out of the largest
// ones, until they make up bytes; it returns how much that was.
func (p *Pool) divide(bytes int64) (released int64) {
	up, ok := p.cfg.Upstream.(Divider)
	if !ok {
		return 0
	}
	if i := p.core.takeAtLeast(bytes + 2*tightRound); i != 0 { // its ends may have to stay
		released = p.dividePiece(up, i)
	}
	for most := int64(MaxBytes); released < bytes; {
		i := p.core.takeUpTo(most)
		if i == 0 {
			break
		}
		size := p.core.headers.at(i).size
		n := p.dividePiece(up, i)
		if n == 0 {
			most = size - quantum
		}
		released += n
	}
	return released
}

// dividePiece gives a part of piece i, which is on no shelf, back to the upstream.
func (p *Pool) dividePiece(up Divider, i uint32) int64 {
	h := p.core.headers.at(i)
	s := span{stream: h.stream, small: h.small}
	err := guard(func() error {
		s.addr, s.bytes = up.Part(h.addr, h.size)
		return nil
	})
	if err == nil && s.bytes > 0 {
		err = p.upstreamRelease(s)
	}
	if err != nil || s.bytes == 0 {
		if err != nil {
			p.warn(err)
		}
		h.left = 0
		p.core.give(i)
		return 0
	}
	p.core.cut(i, s.addr, s.bytes)
	p.tracker.Release(s.bytes)
	p.record(trace.Event{Kind: trace.Release, Bytes: s.bytes, Stream: s.stream})
	return s.bytes
}

// takeAtLeast takes out a piece of the smallest size that is at least size, or 0.
func (c *core) takeAtLeast(size int64) uint32 {
	return c.takeBest(func(t *tree) uint32 { return t.bestFit(&c.headers, size) },
		func(a, b *header) bool { return a.size < b.size })
}

// takeUpTo takes out a piece of the largest size that is at most size, or 0.
func (c *core) takeUpTo(size int64) uint32 {
	return c.takeBest(func(t *tree) uint32 { return t.upTo(&c.headers, size) },
		func(a, b *header) bool { return a.size > b.size })
}

// takeBest takes out the best of what pick finds on the shelves.
func (c *core) takeBest(pick func(*tree) uint32, better func(a, b *header) bool) (best uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, t := range c.shelves {
		if key.hole {
			continue
		}
		i := pick(t)
		if i != 0 && (best == 0 || better(c.headers.at(i), c.headers.at(best))) {
			best = i
		}
	}
	if best != 0 {
		c.unshelve(best)
	}
	return best
}

// cut removes the bytes at addr from piece i, because they have gone back to the
// upstream. Piece i is on no shelf. What lies below and what lies above them, with
// the pieces in use there, are two segments from now on.
func (c *core) cut(i uint32, addr uintptr, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.headers.at(i)
	below := int64(addr - h.addr)
	if end := h.addr + uintptr(h.size); addr < h.addr || bytes <= 0 || addr+uintptr(bytes) > end {
		panic(fmt.Sprintf("pool: upstream has taken %d bytes at %#x, outside the piece from %#x to %#x", bytes, addr, h.addr, end))
	}
	var above uint32
	if h.size > below+bytes {
		above = c.sever(i, below+bytes)
	}
	if h.next != 0 {
		c.headers.at(h.next).prev = 0
		h.next = 0
		c.segments++
	}
	if above != 0 {
		c.put(above)
	}
	if below > 0 {
		h.size = below
		c.put(i)
		return
	}
	if h.prev != 0 {
		c.headers.at(h.prev).next = 0
	} else {
		c.segments--
	}
	c.headers.drop(i)
}
