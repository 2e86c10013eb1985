package pool

import (
	"sync"
	"sync/atomic"
)

// A depot holds full racks for any front to take, as that of Bonwick's magazines
// does (Bonwick and Adams, USENIX 2001). It is for programs that leave
// freeing to cycles: thousands of pieces then come back at once in one goroutine, and
// go out again in others. Through the core that would be a lock, a merge and a
// split for each of them, and those who wait for the lock sleep; so it is a
// short critical section for each rackMax.
//
// What is here cannot merge. It goes to the core before a segment is taken from
// the upstream, and is bounded because that then takes its time.
type depot struct {
	mu    sync.Mutex
	slots [racks]rack  // n counts racks, which are linked through right; head is the first piece of one
	full  atomic.Int64 // racks in all slots; changed under mu
}

const depotMax = 256 // racks: to merge their pieces takes about 4 ms

// put takes a full rack of one size and stream, unless there is no room for it.
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

// drain gives everything to the core and returns how many bytes that were.
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

// restock puts a full rack from the depot into f, which the caller holds, and
// returns one piece of it, or 0.
func (p *Pool) restock(f *front, size int64, stream uint32) uint32 {
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
