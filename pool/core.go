package pool

import (
	"cmp"
	"iter"
	"slices"
	"sync"
)

// Sizes as in PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, commit 001074d250):
// requests up to smallMax share small segments; larger ones up to middleMax share middle segments;
// larger ones get a segment of their own, rounded up. Unlike there, a piece is always split: a
// block is never larger than the request, rounded up to quantum.
const (
	quantum       = 512
	smallMax      = 1 << 20
	smallSegment  = 2 << 20
	middleMax     = 10 << 20
	middleSegment = 20 << 20
	segmentRound  = 2 << 20
	tightRound    = 1 << 16 // when the limit leaves no room for more
	pageRound     = 1 << 12 // of a pool that caches nothing
)

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// segmentSizes returns the sizes to try for a new segment with a block of the given size: the
// largest first, the tightest last. hard is the hard limit, 0 if none.
func segmentSizes(size, hard int64) [3]int64 {
	roomy := roundUp(size, segmentRound)
	switch {
	case size <= smallMax:
		roomy = smallSegment
	case size < middleMax:
		roomy = middleSegmentFor(size, hard)
	}
	return [3]int64{roomy, roundUp(size, segmentRound), roundUp(size, tightRound)}
}

// middleSegmentFor returns the size between 20 and 40 MiB that loses least when it is filled with
// blocks of the given size. Segments of always 20 MiB would lose 18 % to blocks of 8.2 MB, and that
// much less would fit under the hard limit. Under a small limit the result is half of that.
func middleSegmentFor(size, hard int64) (best int64) {
	most := int64(2 * middleSegment)
	if hard > 0 && hard < 64*middleSegment {
		most = middleSegment
	}
	least := 1.0
	for n := (most/2 + size - 1) / size; n*size <= most; n++ {
		bytes := roundUp(n*size, segmentRound)
		if loss := float64(bytes-n*size) / float64(bytes); loss < least {
			best, least = bytes, loss
		}
	}
	return best
}

// A core holds the free pieces of all segments behind one lock. It splits a piece that is larger
// than the request, and merges a piece that comes back with its free neighbours. It never calls the
// upstream.
type core struct {
	headers  headers // first: every call reads it, and few write what follows
	_        [64]byte
	mu       sync.Mutex
	bins     map[bin]*tree
	segments int64 // number of segments
	pieces   int64 // number of free pieces
	freed    int64 // bytes of free pieces
	chunk    int64 // bytes of a Mapper's chunk; 0 = no Mapper
}

// A bin names a set of free pieces that can serve the same requests.
type bin struct {
	stream uint32
	small  bool
	hole   bool
}

func (h *header) bin() bin { return bin{h.stream, h.small, h.hole} }

// take cuts a piece of size bytes out of the best fit. It returns 0 if none fits.
func (c *core) take(size int64, stream uint32) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.bins[bin{stream: stream, small: size <= smallMax}]
	if t == nil {
		return 0
	}
	i := t.bestFit(&c.headers, size)
	if i != 0 {
		c.takeFree(i)
		c.split(i, size)
	}
	return i
}

// split puts what piece i has beyond size back in its bin.
func (c *core) split(i uint32, size int64) {
	if c.headers.at(i).size > size {
		c.addFree(c.sever(i, size))
	}
}

// sever makes a piece of what piece i has beyond size.
func (c *core) sever(i uint32, size int64) uint32 {
	h := c.headers.at(i)
	n := c.headers.new()
	rest := c.headers.at(n)
	rest.addr, rest.size = h.addr+uintptr(size), h.size-size
	rest.stream, rest.small, rest.ranged, rest.hole = h.stream, h.small, h.ranged, h.hole
	rest.prev, rest.next = i, h.next
	if h.next != 0 {
		c.headers.at(h.next).prev = n
	}
	h.next, h.size = n, size
	return n
}

// give puts a chain of pieces, linked through left, into the core.
func (c *core) give(chain uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for chain != 0 {
		i := chain
		chain = c.headers.at(i).left
		c.put(i)
	}
}

// giveBack puts one piece into the core. If its whole segment is free then, it takes the segment
// out and returns it.
func (c *core) giveBack(i uint32) (s span, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i = c.put(i)
	if h := c.headers.at(i); h.prev != 0 || h.next != 0 || h.ranged {
		return span{}, false
	}
	return c.remove(i), true
}

// put merges piece i with its free neighbours, bins it and returns it.
func (c *core) put(i uint32) uint32 {
	h := c.headers.at(i)
	if p := h.prev; p != 0 && c.headers.at(p).free && c.headers.at(p).hole == h.hole {
		c.takeFree(p)
		c.absorb(p, i)
		i, h = p, c.headers.at(p)
	}
	if n := h.next; n != 0 && c.headers.at(n).free && c.headers.at(n).hole == h.hole {
		c.takeFree(n)
		c.absorb(i, n)
	}
	c.addFree(i)
	return i
}

// absorb adds to piece i its neighbour above.
func (c *core) absorb(i, above uint32) {
	h, a := c.headers.at(i), c.headers.at(above)
	h.size += a.size
	h.next = a.next
	if a.next != 0 {
		c.headers.at(a.next).prev = i
	}
	c.headers.drop(above)
}

func (c *core) addFree(i uint32) {
	h := c.headers.at(i)
	key := h.bin()
	t := c.bins[key]
	if t == nil {
		if c.bins == nil {
			c.bins = map[bin]*tree{}
		}
		t = new(tree)
		c.bins[key] = t
	}
	h.free = true
	t.insert(&c.headers, i)
	if !h.hole {
		c.pieces++
		c.freed += h.size
	}
}

func (c *core) takeFree(i uint32) {
	h := c.headers.at(i)
	c.bins[h.bin()].remove(&c.headers, i)
	h.free = false
	if !h.hole {
		c.pieces--
		c.freed -= h.size
	}
}

// addSegment enters a new segment and cuts its first piece out of it for the caller.
func (c *core) addSegment(addr uintptr, bytes, size int64, stream uint32) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.enter(span{addr, bytes, stream, size <= smallMax})
	c.split(i, size)
	return i
}

// A span is a whole segment.
type span struct {
	addr   uintptr
	bytes  int64
	stream uint32
	small  bool
}

// evict takes whole free segments out of the core that make up bytes: see choose. If all together
// are too few, it takes them all.
func (c *core) evict(bytes int64) (out []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.wholeSegments()
	chosen, ok := choose(slices.Clone(all), bytes, func(i uint32) int64 { return c.headers.at(i).size })
	if !ok {
		chosen = all
	}
	for _, i := range chosen {
		out = append(out, c.remove(i))
	}
	return out
}

// wholes returns the bytes of whole free segments.
func (c *core) wholes() (bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.wholeSegments() {
		bytes += c.headers.at(i).size
	}
	return bytes
}

// wholeSegments returns the free segments, smallest first; the caller holds the core.
func (c *core) wholeSegments() (all []uint32) {
	for _, t := range c.bins {
		for i := range t.from(&c.headers, 0) {
			if h := c.headers.at(i); h.prev == 0 && h.next == 0 && !h.ranged {
				all = append(all, i)
			}
		}
	}
	slices.SortFunc(all, func(i, j uint32) int {
		a, b := c.headers.at(i), c.headers.at(j)
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.addr, b.addr))
	})
	return all
}

// remove takes out a segment that is free as a whole: it is the piece i. The caller holds the core.
func (c *core) remove(i uint32) span {
	h := c.headers.at(i)
	c.takeFree(i)
	s := span{h.addr, h.size, h.stream, h.small}
	c.headers.drop(i)
	c.segments--
	return s
}

// restore puts a segment back that the upstream did not take.
func (c *core) restore(s span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addFree(c.enter(s))
}

// enter makes one piece of a new segment. The caller holds the core.
func (c *core) enter(s span) uint32 {
	c.segments++
	i := c.headers.new()
	h := c.headers.at(i)
	h.addr, h.size, h.stream, h.small = s.addr, s.bytes, s.stream, s.small
	h.prev, h.next = 0, 0
	h.ranged, h.hole = false, false
	return i
}

// A tree orders the free pieces of one bin by size, then by address. It is a treap. Its links are
// in the headers, so it allocates nothing. The zero value is empty. The best fit for a size is the
// smallest piece that is large enough. Among equal pieces it is the one at the lowest address, so
// that segments at high addresses become free and can be released.
type tree struct{ root uint32 }

// rank is the priority of a piece in the treap: its number, scrambled.
func rank(i uint32) uint32 { return i * 0x9e3779b1 }

func (h *header) before(size int64, addr uintptr) bool {
	return h.size < size || h.size == size && h.addr < addr
}

// bestFit returns the best fit for size, or 0.
func (t tree) bestFit(hs *headers, size int64) (best uint32) {
	for i := t.root; i != 0; {
		if h := hs.at(i); h.size >= size {
			best, i = i, h.left
		} else {
			i = h.right
		}
	}
	return best
}

func (t *tree) insert(hs *headers, n uint32) {
	h := hs.at(n)
	link := &t.root
	for *link != 0 && rank(*link) >= rank(n) {
		if at := hs.at(*link); at.before(h.size, h.addr) {
			link = &at.right
		} else {
			link = &at.left
		}
	}
	rest := *link
	*link = n
	// Split the rest into the pieces before n and the pieces after n.
	less, more := &h.left, &h.right
	for rest != 0 {
		if at := hs.at(rest); at.before(h.size, h.addr) {
			*less, less, rest = rest, &at.right, at.right
		} else {
			*more, more, rest = rest, &at.left, at.left
		}
	}
	*less, *more = 0, 0
}

func (t *tree) remove(hs *headers, n uint32) {
	h := hs.at(n)
	link := &t.root
	for *link != n {
		if at := hs.at(*link); at.before(h.size, h.addr) {
			link = &at.right
		} else {
			link = &at.left
		}
	}
	// Merge the children in n's place.
	less, more := h.left, h.right
	for less != 0 && more != 0 {
		if rank(less) >= rank(more) {
			at := hs.at(less)
			*link, link, less = less, &at.right, at.right
		} else {
			at := hs.at(more)
			*link, link, more = more, &at.left, at.left
		}
	}
	*link = less | more
}

// from yields the pieces of at least size, in order.
func (t tree) from(hs *headers, size int64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) { walk(hs, t.root, size, yield) }
}

func walk(hs *headers, i uint32, size int64, yield func(uint32) bool) bool {
	if i == 0 {
		return true
	}
	h := hs.at(i)
	return (h.size < size || walk(hs, h.left, size, yield) && yield(i)) && walk(hs, h.right, size, yield)
}

// largest returns the size of the largest piece, or 0 for an empty tree.
func (t tree) largest(hs *headers) (size int64) {
	for i := t.root; i != 0; i = hs.at(i).right {
		size = hs.at(i).size
	}
	return size
}
