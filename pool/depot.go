package pool

import (
	"sync"
	"sync/atomic"
)

// A depot holds full racks for any front to take, as the depot of magazines does
// (Bonwick and Adams, USENIX 2001). It serves programs that leave freeing to
// cycles. There one goroutine frees thousands of pieces at once, and others
// allocate them again. Through the core each piece would cost a lock, a merge and
// a split. Through the depot, rackMax pieces cost one short critical section.
//
// Pieces in the depot cannot merge. Before the pool asks the upstream for a
// segment, it moves them to the core. That takes time, so their number is bounded.
type depot struct {
	mu    sync.Mutex
	slots [racks]rack  // here n counts racks; head is the first piece of a rack, whose right is that of the next
	full  atomic.Int64 // number of racks in all slots; changed under mu
}

const depotMax = 256 // racks: to merge their pieces takes about 4 ms

// put takes a full rack. It returns false if there is no room for it.
func (d *depot) put(hs *headers, chain uint32) bool {
	h := hs.at(chain)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.slots[rackOf(h.size, h.stream)]
	if s.n == 0 {
		*s = rack{size: h.size, stream: h.stream}
	}
	if !s.is(h.size, h.stream) || d.full.Load() >= depotMax {
		return false
	}
	h.right = s.head
	s.head = chain
	s.n++
	d.full.Add(1)
	return true
}

// take returns a full rack, or 0.
func (d *depot) take(hs *headers, size int64, stream uint32) uint32 {
	if d.full.Load() == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.slots[rackOf(size, stream)]
	if s.n == 0 || !s.is(size, stream) {
		return 0
	}
	chain := s.head
	s.head = hs.at(chain).right
	s.n--
	d.full.Add(-1)
	return chain
}

// drain gives all racks to the core. It returns their bytes.
func (d *depot) drain(c *core) (bytes int64) {
	d.mu.Lock()
	slots := d.slots
	d.full.Store(0)
	clear(d.slots[:])
	d.mu.Unlock()
	for _, s := range slots {
		bytes += rackMax * int64(s.n) * s.size
		for ; s.n > 0; s.n-- {
			chain := s.head
			s.head = c.headers.at(chain).right
			c.give(chain)
		}
	}
	return bytes
}

// restock moves a full rack from the depot to f and takes one piece from it. It
// returns 0 if there is none, or no room in f. The caller holds f.
func (p *Pool) restock(f *front, size int64, stream uint32) uint32 {
	if i := f.pop(&p.core.headers, size, stream); i != 0 { // deeper in the stack, lockFront may choose another front than Alloc did
		f.hits++
		return i
	}
	r := &f.racks[rackOf(size, stream)]
	if r.n > 0 || f.cached+rackMax*size > f.keep {
		return 0
	}
	chain := p.depot.take(&p.core.headers, size, stream)
	if chain == 0 {
		return 0
	}
	*r = rack{size: size, stream: stream, head: chain, n: rackMax}
	f.cached += rackMax * size
	p.stock(f)
	return f.pop(&p.core.headers, size, stream)
}
