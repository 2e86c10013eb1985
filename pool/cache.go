package pool

import (
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/pressure"
)

// A cache keeps pieces before the core. With it most calls touch no memory that other goroutines
// write. It keeps the pieces that were freed last, in one magazine for each size and stream. The
// piece that was freed last is handed out first. There are four to eight caches for each processor.
// A goroutine finds its cache by the address of its stack. If the cache has no piece, it looks in
// the depot, then in other caches, then in the core.
//
// The documentation of the package has the order of the locks.
type cache struct {
	mu          sync.Mutex
	number      uint32
	from        uint32 // number of the cache that the last stolen piece came from
	used        bool   // a goroutine has used the cache since the pool's last Sample
	count       shard
	cached      int64 // bytes in the magazines
	keep        int64 // largest allowed value of cached
	lastEmptied int   // the magazine that was emptied last to make room
	hits        int64 // number of allocations that a magazine served
	unsampled   int64 // bytes to allocate until the next allocation site is noted
	magazines   [magazines]magazine
	_           [64]byte
}

// caches are the caches of a pool.
type caches struct {
	all     []cache
	mask    uint32             // number of caches - 1
	stocked []atomic.Bool      // by number: whether a cache may have pieces in its magazines
	active  []atomic.Bool      // by number: whether a cache may have counts that the tracker lacks
	offsets [256]atomic.Uint32 // for each hash of a stack, the distance from its first cache, see lockCache
}

// init makes n caches, a power of two, that count for t.
func (c *caches) init(n int, t *tracker) {
	c.all, c.mask = make([]cache, n), uint32(n-1)
	c.stocked, c.active = make([]atomic.Bool, n), make([]atomic.Bool, n)
	for k := range c.all {
		c.all[k].number = uint32(k)
		c.all[k].count = shard{tracker: t}
	}
}

// A magazine is a stack of pieces of one size and stream.
type magazine struct {
	size   int64
	head   uint32 // the top piece, chained through left
	n      uint32 // number of pieces
	stream uint32
}

// is reports whether pieces of this size and stream belong in the magazine.
func (r *magazine) is(size int64, stream uint32) bool { return r.size == size && r.stream == stream }

const (
	magazines   = 128
	magazineMax = 64 // pieces
	keepMax     = 64 << 20
	slackMax    = 1 << 20
)

func slotOf(size int64, stream uint32) int {
	return int((uint64(size)>>9 + uint64(stream)<<40) * 0x9e3779b97f4a7c15 >> (64 - 7))
}

// lockCache returns the caller's cache, locked. The address of the stack tells goroutines apart. A
// goroutine that finds its cache locked moves to the next cache for good. So goroutines that run at
// the same time soon have different caches.
func (p *Pool) lockCache() *cache {
	hash := pressure.StackHash()
	offset := &p.caches.offsets[hash>>(64-8)]
	k := uint32(hash>>32) + offset.Load()
	f := &p.caches.all[k&p.caches.mask]
	if !f.mu.TryLock() {
		offset.Add(1)
		f = &p.caches.all[(k+1)&p.caches.mask]
		f.mu.Lock()
	}
	if !f.used {
		f.used = true
		if active := &p.caches.active[f.number]; !active.Load() {
			active.Store(true)
		}
	}
	return f
}

// eachCache calls do for all caches, locked.
func (p *Pool) eachCache(do func(*cache)) {
	for k := range p.caches.all {
		p.caches.all[k].locked(do)
	}
}

// eachActive calls do for the caches that may have counts that the tracker lacks, locked. These are
// about as many as goroutines that use the pool.
func (p *Pool) eachActive(do func(*cache)) {
	for k := range p.caches.all {
		if p.caches.active[k].Load() {
			p.caches.all[k].locked(do)
		}
	}
}

func (f *cache) locked(do func(*cache)) {
	f.mu.Lock()
	do(f)
	f.mu.Unlock()
}

// age settles the counts of a cache that no goroutine has used since the last call. The caller
// holds f.
func (p *Pool) age(f *cache) {
	if !f.used {
		f.count.Settle()
		p.caches.active[f.number].Store(false)
	}
	f.used = false
}

// pop takes a piece from its magazine. It returns 0 if the magazine has none.
func (f *cache) pop(hs *headers, size int64, stream uint32) uint32 {
	r := &f.magazines[slotOf(size, stream)]
	if r.n == 0 || !r.is(size, stream) {
		return 0
	}
	i := r.head
	r.head = hs.at(i).left
	r.n--
	f.cached -= size
	return i
}

// push puts a piece in its magazine. It returns a chain of the pieces that have no room there: the
// piece itself, pieces of another size, or a full magazine. With full, the chain is a full
// magazine, which the depot may take.
func (f *cache) push(hs *headers, i uint32) (out uint32, full bool) {
	h := hs.at(i)
	r := &f.magazines[slotOf(h.size, h.stream)]
	same := r.is(h.size, h.stream)
	switch full = same && r.n == magazineMax; {
	case full:
		out = f.empty(r)
	case same && r.n > 0 && int64(r.n+1)*h.size > f.keep/4: // the rest is for other sizes
		h.left = 0
		return i, false
	case f.cached+h.size > f.keep:
		h.left = f.makeRoom(h.size)
		return i, false
	case !same:
		out = f.empty(r)
		r.size, r.stream = h.size, h.stream
	}
	h.left = r.head
	r.head = i
	r.n++
	f.cached += h.size
	return out, full
}

// makeRoom empties one magazine of another size, each time the next one. Otherwise sizes that are
// no longer asked for would fill the cache for ever.
func (f *cache) makeRoom(size int64) (out uint32) {
	if size > f.keep {
		return 0
	}
	for range magazines {
		f.lastEmptied = (f.lastEmptied + 1) % magazines
		if r := &f.magazines[f.lastEmptied]; r.n > 0 && r.size != size {
			return f.empty(r)
		}
	}
	return 0
}

// empty takes all pieces from a magazine, as a chain.
func (f *cache) empty(r *magazine) uint32 {
	f.cached -= int64(r.n) * r.size
	chain := r.head
	r.head, r.n = 0, 0
	return chain
}

// stock notes that f may have pieces to steal. The caller holds f.
func (p *Pool) stock(f *cache) {
	if stocked := &p.caches.stocked[f.number]; !stocked.Load() {
		stocked.Store(true)
	}
}

// steal takes a piece from a magazine of another cache, or returns 0. It also moves up to half of
// that magazine to f. The caller holds f. It waits for no lock.
//
// A goroutine that frees in a deeper call than it allocates in has two caches, and steals for each
// allocation. So the search begins where the last one ended and skips caches that have nothing: to
// lock every cache takes 1 us with 16 cores.
func (p *Pool) steal(f *cache, size int64, stream uint32) uint32 {
	slot := slotOf(size, stream)
	mine := &f.magazines[slot]
	for n := range uint32(len(p.caches.all)) {
		k := (f.from + n) & p.caches.mask
		g := &p.caches.all[k]
		if g == f || !p.caches.stocked[k].Load() || !g.mu.TryLock() {
			continue
		}
		if g.cached == 0 {
			p.caches.stocked[k].Store(false)
		}
		var found uint32
		if r := &g.magazines[slot]; r.n > 0 && r.is(size, stream) {
			found = g.pop(&p.core.headers, size, stream)
			if mine.n == 0 {
				mine.size, mine.stream = size, stream
			}
			for n := r.n / 2; n > 0 && mine.is(size, stream) && f.cached+size <= f.keep; n-- {
				i := g.pop(&p.core.headers, size, stream)
				p.core.headers.at(i).left = mine.head
				mine.head = i
				mine.n++
				f.cached += size
			}
		}
		g.mu.Unlock()
		if found != 0 {
			p.stock(f)
			f.from = k
			return found
		}
	}
	return 0
}

// flush gives the pieces in all caches and in the depot to the core, where they can merge. It
// returns their bytes.
func (p *Pool) flush() (bytes int64) {
	p.eachCache(func(f *cache) { bytes += f.flush(&p.core) })
	return bytes + p.depot.drain(&p.core)
}

// flush gives the pieces in the magazines to the core. It returns their bytes. The caller holds f.
func (f *cache) flush(c *core) (bytes int64) {
	for r := range f.magazines {
		if f.magazines[r].n > 0 {
			bytes += int64(f.magazines[r].n) * f.magazines[r].size
			c.give(f.empty(&f.magazines[r]))
		}
	}
	return bytes
}

// A depot holds full magazines for any cache to take, as the depot of magazines does (Bonwick and
// Adams, USENIX 2001). It serves programs that leave freeing to cycles. There one goroutine frees
// thousands of pieces at once, and others allocate them again. Through the core each piece would
// cost a lock, a merge and a split. Through the depot, magazineMax pieces cost one short critical
// section.
//
// Pieces in the depot cannot merge. Before the pool asks the upstream for a segment, it moves them
// to the core. That takes time, so their number is bounded.
type depot struct {
	mu    sync.Mutex
	slots [magazines]magazine // here n counts magazines; head is the first piece of a magazine, whose right is that of the next
	full  atomic.Int64        // number of magazines in all slots; changed under mu
}

const depotMax = 256 // magazines: to merge their pieces takes about 4 ms

// put takes a full magazine. It returns false if there is no room for it.
func (d *depot) put(hs *headers, chain uint32) bool {
	h := hs.at(chain)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.slots[slotOf(h.size, h.stream)]
	if s.n == 0 {
		*s = magazine{size: h.size, stream: h.stream}
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

// take returns a full magazine, or 0.
func (d *depot) take(hs *headers, size int64, stream uint32) uint32 {
	if d.full.Load() == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.slots[slotOf(size, stream)]
	if s.n == 0 || !s.is(size, stream) {
		return 0
	}
	chain := s.head
	s.head = hs.at(chain).right
	s.n--
	d.full.Add(-1)
	return chain
}

// drain gives all magazines to the core. It returns their bytes.
func (d *depot) drain(c *core) (bytes int64) {
	d.mu.Lock()
	slots := d.slots
	d.full.Store(0)
	clear(d.slots[:])
	d.mu.Unlock()
	for _, s := range slots {
		bytes += magazineMax * int64(s.n) * s.size
		for ; s.n > 0; s.n-- {
			chain := s.head
			s.head = c.headers.at(chain).right
			c.give(chain)
		}
	}
	return bytes
}

// restock moves a full magazine from the depot to f and takes one piece from it. It returns 0 if
// the depot has none, or f has no room. The caller holds f.
func (p *Pool) restock(f *cache, size int64, stream uint32) uint32 {
	if i := f.pop(&p.core.headers, size, stream); i != 0 { // deeper in the stack, lockCache may choose another cache than Alloc did
		f.hits++
		return i
	}
	r := &f.magazines[slotOf(size, stream)]
	if r.n > 0 || f.cached+magazineMax*size > f.keep {
		return 0
	}
	chain := p.depot.take(&p.core.headers, size, stream)
	if chain == 0 {
		return 0
	}
	*r = magazine{size: size, stream: stream, head: chain, n: magazineMax}
	f.cached += magazineMax * size
	p.stock(f)
	return f.pop(&p.core.headers, size, stream)
}
