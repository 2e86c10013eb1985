package pool

import (
	"cmp"
	"slices"
)

// This file has the part of a core that serves a [Mapper]. A range of addresses is a segment whose
// pieces may be holes, which have no memory behind them. Holes lie in bins of their own and are
// whole chunks. A piece that is claimed is in no bin, and belongs to one goroutine until it is
// filled, emptied or unclaimed.

// addRange enters a range of addresses as one hole.
func (c *core) addRange(s span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.enter(s)
	h := c.headers.at(i)
	h.ranged, h.hole = true, true
	c.addFree(i)
}

// claimPlace takes free pieces and holes that lie side by side and have room for size bytes once
// the holes are filled. It picks those that need the least memory, and returns how much that is. If
// there are none, it returns nil.
func (c *core) claimPlace(size int64, stream uint32) (place []uint32, need int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best window
	if holes := c.bins[bin{stream: stream, small: size <= smallMax, hole: true}]; holes != nil {
		for i := range holes.from(&c.headers, 0) {
			if run := c.runFrom(i); run != nil {
				best = c.best(best, run, size)
			}
		}
	}
	for _, i := range best.pieces {
		c.takeFree(i)
	}
	if best.pieces != nil {
		c.trim(best)
	}
	return best.pieces, best.need
}

// runFrom returns the free pieces and holes that lie side by side, if hole i is their first hole,
// and else nil.
func (c *core) runFrom(i uint32) (run []uint32) {
	free := func(i uint32) bool { return i != 0 && c.headers.at(i).free }
	if before := c.headers.at(i).prev; free(before) {
		if free(c.headers.at(before).prev) {
			return nil // free pieces are merged, so this is a hole
		}
		i = before
	}
	for ; free(i); i = c.headers.at(i).next {
		run = append(run, i)
	}
	return run
}

// A window is a part of a run. It needs memory for its holes.
type window struct {
	pieces      []uint32
	need        int64
	first, last int64 // bytes at its ends that are left out: of a hole whole chunks
}

// best returns the better of w and the windows of run that have room for size bytes.
func (c *core) best(w window, run []uint32, size int64) window {
	for from := range run {
		var room, holes int64
		for to := from; to < len(run); to++ {
			h := c.headers.at(run[to])
			room += h.size
			if h.hole {
				holes += h.size
			}
			if room < size {
				continue
			}
			x := window{pieces: run[from : to+1], need: holes}
			first, spare := c.headers.at(run[from]), room-size
			switch {
			case h.hole && spare >= h.size:
				continue // the window that ends before it is as good
			case h.hole:
				x.last = spare &^ (c.chunk - 1)
				x.need -= x.last
			case first.hole:
				x.first = spare &^ (c.chunk - 1)
				x.need -= x.first
				x.last = spare - x.first
			default:
				x.last = spare
			}
			if x.first >= first.size {
				break // the window that begins after it is as good
			}
			if w.pieces == nil || x.need < w.need || x.need == w.need && c.headers.at(x.pieces[0]).addr < c.headers.at(w.pieces[0]).addr {
				w = x
			}
			if !first.hole {
				break // one that ends later needs as much
			}
		}
	}
	return w
}

// trim puts back the ends that the window leaves out. Its pieces are in no bin.
func (c *core) trim(w window) {
	last := len(w.pieces) - 1
	if w.last > 0 {
		i := w.pieces[last]
		c.put(c.sever(i, c.headers.at(i).size-w.last))
	}
	if w.first > 0 {
		i := w.pieces[0]
		w.pieces[0] = c.sever(i, w.first)
		c.put(i)
	}
}

// fill makes one piece of a place whose holes have memory now, and gives back the bytes beyond
// size.
func (c *core) fill(place []uint32, size int64) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := place[0]
	c.headers.at(i).hole = false
	for range place[1:] {
		c.absorb(i, c.headers.at(i).next)
	}
	if c.headers.at(i).size > size {
		c.put(c.sever(i, size))
	}
	return i
}

// A part is the whole chunks of a free piece.
type part struct {
	piece uint32
	addr  uintptr
	bytes int64
}

// loose returns the bytes of memory that lie behind free pieces in whole chunks.
func (c *core) loose() (bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.parts() {
		bytes += x.bytes
	}
	return bytes
}

// parts returns those of all free pieces; the caller holds the core.
func (c *core) parts() (all []part) {
	for key, t := range c.bins {
		if key.hole || c.chunk == 0 {
			continue
		}
		for i := range t.from(&c.headers, c.chunk) {
			h := c.headers.at(i)
			from := uintptr(roundUp(int64(h.addr), c.chunk))
			to := (h.addr + uintptr(h.size)) &^ uintptr(c.chunk-1)
			if h.ranged && to > from {
				all = append(all, part{i, from, int64(to - from)})
			}
		}
	}
	return all
}

// claimParts takes bytes, in whole chunks, out of the free pieces. It takes the smallest piece that
// suffices. If none does, it takes the largest ones and the smallest that suffices for the rest. If
// all together are too small, it takes nothing.
func (c *core) claimParts(bytes int64) (claimed []uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes <= 0 {
		return nil, true
	}
	all := c.parts()
	slices.SortFunc(all, func(a, b part) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.addr, b.addr)) })
	chosen, ok := choose(all, bytes, func(x part) int64 { return x.bytes })
	for _, x := range chosen {
		n := min(x.bytes, bytes)
		claimed = append(claimed, c.claimPart(x, n))
		bytes -= n
	}
	return claimed, ok
}

// choose picks out of all, smallest first, enough for bytes: the largest ones until one suffices
// for the rest, and then the smallest that suffices. It picks nothing if all together are too
// small.
func choose[T any](all []T, bytes int64, size func(T) int64) (chosen []T, ok bool) {
	sum := int64(0)
	for _, x := range all {
		sum += size(x)
	}
	if sum < bytes {
		return nil, false
	}
	for bytes > 0 {
		k, _ := slices.BinarySearchFunc(all, bytes, func(x T, want int64) int { return cmp.Compare(size(x), want) })
		k = min(k, len(all)-1)
		chosen = append(chosen, all[k])
		bytes -= size(all[k])
		all = slices.Delete(all, k, k+1)
	}
	return chosen, true
}

// claimPart takes bytes out of a part, beside a hole if there is one, so that the holes become one;
// the caller holds the core.
func (c *core) claimPart(x part, bytes int64) uint32 {
	i := x.piece
	c.takeFree(i)
	h := c.headers.at(i)
	if below := h.prev; below == 0 || !c.headers.at(below).hole || x.addr != h.addr {
		x.addr += uintptr(x.bytes - bytes) // the upper end
	}
	if from := int64(x.addr - h.addr); from > 0 {
		i = c.sever(i, from)
		c.put(x.piece)
	}
	if c.headers.at(i).size > bytes {
		c.put(c.sever(i, bytes))
	}
	return i
}

// makeHoles makes holes of pieces whose memory is gone.
func (c *core) makeHoles(claimed []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range claimed {
		c.headers.at(i).hole = true
		c.put(i)
	}
}

// unclaim puts pieces back as they were.
func (c *core) unclaim(claimed []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range claimed {
		c.put(i)
	}
}

// spans returns where those claimed pieces lie that are holes, or that are not.
func (c *core) spans(claimed []uint32, holes bool) (all []Span) {
	for _, i := range claimed {
		if h := c.headers.at(i); h.hole == holes {
			all = append(all, Span{h.addr, h.size, h.stream})
		}
	}
	return all
}

// takeEmptyRanges takes out the ranges that are one hole.
func (c *core) takeEmptyRanges() (out []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var empty []uint32
	for key, t := range c.bins {
		if !key.hole {
			continue
		}
		for i := range t.from(&c.headers, 0) {
			if h := c.headers.at(i); h.prev == 0 && h.next == 0 {
				empty = append(empty, i)
			}
		}
	}
	for _, i := range empty {
		out = append(out, c.remove(i))
	}
	return out
}
