package pool

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/pressure"
)

// A front is a cache of pieces before the core. With it most calls touch no memory
// that other goroutines write. It keeps the pieces that were freed last, in one
// rack for each size and stream. The piece that was freed last is handed out
// first. There are four to eight fronts for each processor. A goroutine finds its
// front by the address of its stack. If the front has no piece, it looks in the
// depot, then in other fronts, then in the core.
//
// The documentation of the package has the order of the locks.
type front struct {
	mu        sync.Mutex
	number    uint32
	from      uint32 // number of the front that the last stolen piece came from
	active    bool   // the front is in Pool.active
	used      bool   // a goroutine has used the front since the pool's last Sample
	stocked   bool   // the front is in Pool.stocked
	count     pressure.Shard
	cached    int64          // bytes in the racks
	keep      int64          // largest allowed value of cached
	hand      int            // the rack that was emptied last to make room
	hits      int64          // number of allocations that a rack served
	unsampled int64          // bytes to allocate until the next allocation site is noted
	classes   [classes]int64 // allocations by power of two
	racks     [racks]rack
	_         [64]byte
}

// A rack is a stack of pieces of one size and stream.
type rack struct {
	size   int64
	head   uint32 // the top piece, chained through left
	n      uint32 // number of pieces
	stream uint32
}

// is reports whether pieces of this size and stream belong on the rack.
func (r *rack) is(size int64, stream uint32) bool { return r.size == size && r.stream == stream }

const (
	racks    = 128
	rackMax  = 64 // pieces
	classes  = 48 // class k: up to 2^k bytes
	keepMax  = 64 << 20
	slackMax = 1 << 20
)

func class(size int64) int { return min(bits.Len64(uint64(size-1)), classes-1) }

func rackOf(size int64, stream uint32) int {
	return int((uint64(size)>>9 + uint64(stream)<<40) * 0x9e3779b97f4a7c15 >> (64 - 7))
}

// lockFront returns the caller's front, locked. The address of the stack tells
// goroutines apart. A goroutine that finds its front locked moves to the next
// front for good. So goroutines that run at the same time soon have different
// fronts.
func (p *Pool) lockFront() *front {
	hash := pressure.StackHash()
	offset := &p.offsets[hash>>(64-8)]
	k := uint32(hash>>32) + offset.Load()
	f := &p.fronts[k&p.frontMask]
	if !f.mu.TryLock() {
		offset.Add(1)
		f = &p.fronts[(k+1)&p.frontMask]
		f.mu.Lock()
	}
	if !f.used {
		f.used = true
		if !f.active {
			f.active = true
			p.active.add(f.number)
		}
	}
	return f
}

// eachFront calls do for all fronts, locked.
func (p *Pool) eachFront(do func(*front)) {
	for k := range p.fronts {
		p.fronts[k].locked(do)
	}
}

// eachActive calls do for the fronts that may have counts that the tracker lacks,
// locked. These are about as many as goroutines that use the pool.
func (p *Pool) eachActive(do func(*front)) {
	for k := range p.active.all {
		p.fronts[k].locked(do)
	}
}

func (f *front) locked(do func(*front)) {
	f.mu.Lock()
	do(f)
	f.mu.Unlock()
}

// age settles the counts of a front that no goroutine has used since the last
// call. The caller holds f.
func (p *Pool) age(f *front) {
	if !f.used {
		f.count.Settle()
		f.active = false
		p.active.remove(f.number)
	}
	f.used = false
}

// pop takes a piece from its rack. It returns 0 if there is none.
func (f *front) pop(hs *headers, size int64, stream uint32) uint32 {
	r := &f.racks[rackOf(size, stream)]
	if r.n == 0 || !r.is(size, stream) {
		return 0
	}
	i := r.head
	r.head = hs.at(i).left
	r.n--
	f.cached -= size
	return i
}

// push puts a piece on its rack. It returns a chain of the pieces for which there
// is no room: the piece itself, pieces of another size that were on the rack, or
// a full rack. With full the chain is a full rack, which the depot may take.
func (f *front) push(hs *headers, i uint32) (out uint32, full bool) {
	h := hs.at(i)
	r := &f.racks[rackOf(h.size, h.stream)]
	same := r.is(h.size, h.stream)
	switch full = same && r.n == rackMax; {
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

// makeRoom empties one rack of another size, each time the next one. Otherwise
// sizes that nobody asks for any more would fill the front for ever.
func (f *front) makeRoom(size int64) (out uint32) {
	if size > f.keep {
		return 0
	}
	for range racks {
		f.hand = (f.hand + 1) % racks
		if r := &f.racks[f.hand]; r.n > 0 && r.size != size {
			return f.empty(r)
		}
	}
	return 0
}

// empty takes all pieces from a rack, as a chain.
func (f *front) empty(r *rack) uint32 {
	f.cached -= int64(r.n) * r.size
	chain := r.head
	r.head, r.n = 0, 0
	return chain
}

// A numberSet is a set of fronts. It is read often and changes rarely.
type numberSet []atomic.Uint64

func newNumberSet(n int) numberSet { return make(numberSet, (n+63)/64) }

// all yields the numbers in the set.
func (s numberSet) all(yield func(k uint32) bool) {
	for n := range s {
		for w := s[n].Load(); w != 0; w &= w - 1 {
			if !yield(uint32(64*n + bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

func (s numberSet) has(k uint32) bool { return s[k/64].Load()&(1<<(k%64)) != 0 }
func (s numberSet) add(k uint32)      { s[k/64].Or(1 << (k % 64)) }
func (s numberSet) remove(k uint32)   { s[k/64].And(^uint64(1 << (k % 64))) }

// stock notes that f may have pieces to steal. The caller holds f.
func (p *Pool) stock(f *front) {
	if !f.stocked {
		f.stocked = true
		p.stocked.add(f.number)
	}
}

// steal takes a piece from a rack of another front, or returns 0. It also moves up
// to half of that rack to f. The caller holds f. It waits for no lock.
//
// A goroutine that frees in a deeper call than it allocates in has two fronts, and
// steals for each allocation. So the search begins where the last one ended and
// skips fronts that have nothing: to lock every front takes 1 us with 16 cores.
func (p *Pool) steal(f *front, size int64, stream uint32) uint32 {
	slot := rackOf(size, stream)
	mine := &f.racks[slot]
	for n := range uint32(len(p.fronts)) {
		k := (f.from + n) & p.frontMask
		g := &p.fronts[k]
		if g == f || !p.stocked.has(k) || !g.mu.TryLock() {
			continue
		}
		if g.cached == 0 {
			g.stocked = false
			p.stocked.remove(k)
		}
		var found uint32
		if r := &g.racks[slot]; r.n > 0 && r.is(size, stream) {
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

// flush gives the pieces in all fronts and in the depot to the core, where they
// can merge. It returns their bytes.
func (p *Pool) flush() (bytes int64) {
	p.eachFront(func(f *front) { bytes += f.flush(&p.core) })
	return bytes + p.depot.drain(&p.core)
}

// flush gives the pieces in the racks to the core. It returns their bytes. The
// caller holds f.
func (f *front) flush(c *core) (bytes int64) {
	for r := range f.racks {
		if f.racks[r].n > 0 {
			bytes += int64(f.racks[r].n) * f.racks[r].size
			c.give(f.empty(&f.racks[r]))
		}
	}
	return bytes
}
