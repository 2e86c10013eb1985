package pool

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/eagergc/eagergc/pressure"
)

// A front is a cache of pieces before the core, so that most calls touch no
// memory that other goroutines write. It keeps the pieces that were freed last
// in racks, one for each size and stream, and hands them out again, last in,
// first out. There are a few fronts for each processor; a goroutine finds its
// own by the address of its stack, and takes pieces from the depot and the
// others before it goes to the core.
//
// The documentation of the package has the order of the locks.
type front struct {
	mu        sync.Mutex
	number    uint32
	from      uint32 // the front that the last stolen piece came from
	active    bool   // it is in Pool.active
	used      bool   // since the pool's last Sample
	stocked   bool   // it is in Pool.stocked
	count     pressure.Shard
	cached    int64          // bytes in the racks
	keep      int64          // the most that cached may be
	hand      int            // the rack that was emptied last to make room
	hits      int64          // allocations that a rack served
	unsampled int64          // bytes that may be allocated before a site is noted
	classes   [classes]int64 // allocations by power of two
	racks     [racks]rack
	_         [64]byte
}

// A rack is a stack of pieces of one size and stream.
type rack struct {
	size   int64
	head   uint32 // chain through left
	n      uint32
	stream uint32
}

// is reports whether a piece of that size and stream belongs on the rack.
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

// lockFront returns the caller's front, locked. Goroutines are told apart by the
// address of their stack. One that meets another in its front moves on to the
// next for good, so those that run at the same time soon have fronts of their own.
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

// eachActive calls do for the fronts that have counts of their own, locked. There
// are as many as goroutines at work; each cycle's walk uses another one once.
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

// age settles a front that nobody has used since the last call; the caller holds it.
func (p *Pool) age(f *front) {
	if !f.used {
		f.count.Settle()
		f.active = false
		p.active.remove(f.number)
	}
	f.used = false
}

// pop takes a piece from a rack, or 0.
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

// push puts a piece on its rack. It returns a chain of pieces that found no
// room: the piece itself, those of other sizes that were here, or all of a full
// rack, for the depot.
func (f *front) push(hs *headers, i uint32) (out uint32, full bool) {
	h := hs.at(i)
	r := &f.racks[rackOf(h.size, h.stream)]
	same := r.is(h.size, h.stream)
	switch full = same && r.n == rackMax; {
	case full:
		out = f.empty(r)
	case same && r.n > 0 && int64(r.n+1)*h.size > f.keep/4: // no room that others need
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

// makeRoom empties one rack of another size, each time the next, so that sizes
// that nobody asks for any more do not fill the front for good.
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

// stock notes that f, which the caller holds, may have pieces to steal.
func (p *Pool) stock(f *front) {
	if !f.stocked {
		f.stocked = true
		p.stocked.add(f.number)
	}
}

// steal moves up to half of what another front has on a rack to f, which the
// caller holds, and returns one piece of it, or 0. It waits for no lock. A
// goroutine that frees in a deeper call than it allocates in has two fronts and
// comes here each time, so the search begins where it ended last, and passes
// over fronts that have nothing: locking every one takes 1 us with 16 cores.
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

// flush gives what is in the racks of all fronts and in the depot to the core,
// where it can merge, and returns how much that was.
func (p *Pool) flush() (bytes int64) {
	p.eachFront(func(f *front) {
		for r := range f.racks {
			if f.racks[r].n > 0 {
				bytes += int64(f.racks[r].n) * f.racks[r].size
				p.core.give(f.empty(&f.racks[r]))
			}
		}
	})
	return bytes + p.depot.drain(&p.core)
}
