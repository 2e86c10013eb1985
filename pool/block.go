package pool

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A Block is memory that a pool has handed out. It is a plain value without pointers: the Go
// collector never looks at it, and dropping it leaks the memory. The zero value is no block.
type Block struct {
	Addr  uintptr // first byte, aligned to 512 bytes
	Bytes int64   // as asked for; the pool counts it rounded up to 512
	ref   uint64  // generation and number of the header
}

// ID returns the number of the block. No other block of the pool has the same while this one is
// handed out.
func (b Block) ID() uint64 { return b.ref }

// pointer turns the address of memory outside the Go heap into a pointer.
func pointer(addr uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// A header describes one piece of a segment. It is small and has no pointers, so that the Go
// collector does not look into a million of them. Headers are never moved or given back to Go.
// Number 0 means none.
//
// A piece is in one place at a time. The place says what left and right link, and which lock guards
// them:
//
//	place             gen   left                  right           guarded by
//	handed out        odd   -                     -               -
//	waits for stream  even  -                     -               - (inFlight has its number)
//	magazine          even  next of the magazine  -               cache.mu
//	depot             even  next of the magazine  next magazine   depot.mu
//	core's tree       even  smaller pieces        larger pieces   core.mu
//	core's spare      even  next unused header    -               core.mu
//
// Between two places a piece is in a chain through left. One goroutine has taken that chain from the
// first place, and no other knows it. Fields without a guard are written while the piece is in the
// core, or by the goroutine that hands it out or takes it back.
type header struct {
	addr        uintptr
	size        int64         // bytes, a multiple of 512
	prev, next  uint32        // neighbours in the segment, by address; guarded by core.mu
	left, right uint32        // see above
	gen         atomic.Uint32 // generation: odd while the piece is handed out
	stream      uint32        // the home stream: its work may use the piece without waiting
	site        uint32        // number of the allocation site, if it was sampled; 0 = not sampled
	free        bool          // the piece is in the core's tree; guarded by core.mu
	small       bool          // the piece is of a small segment
	ranged      bool          // the piece is of a range of addresses, see Mapper
	hole        bool          // it is part of a range and has no memory; guarded by core.mu, or by its claimer
	used        atomic.Uint32 // number of another stream that uses it + 1; manyStreams; 0 = no other
}

// A table can be read while it grows. It consists of up to 20 parts that are never moved. The first
// and the second have 4096 entries each, and each later one has twice as many as the one before it.
type table[T any] [20]atomic.Pointer[[]T]

const firstPart = 12 // log2 of its length

func (t *table[T]) at(i uint32) *T {
	k := bits.Len32(i >> firstPart)
	part := *t[k].Load()
	if k > 0 {
		i -= 1 << (firstPart + k - 1)
	}
	return &part[i]
}

// grow makes the part that i is in, unless it is there.
func (t *table[T]) grow(i uint32) {
	if k := bits.Len32(i >> firstPart); t[k].Load() == nil {
		part := make([]T, 1<<(firstPart+max(k-1, 0)))
		t[k].CompareAndSwap(nil, &part)
	}
}

// headers are all headers of a pool, by number.
type headers struct {
	table[header]
	used  uint32 // number of headers ever made; guarded by core.mu
	spare uint32 // chain of unused headers, through left; guarded by core.mu
}

// find is at for a number that may be wrong. It returns nil if there is no such header.
func (h *headers) find(i uint32) *header {
	k := bits.Len32(i >> firstPart)
	if i == 0 || k >= len(h.table) || h.table[k].Load() == nil {
		return nil
	}
	return h.at(i)
}

// new returns the number of an unused header; the caller holds the core.
func (h *headers) new() uint32 {
	if i := h.spare; i != 0 {
		h.spare = h.at(i).left
		return i
	}
	h.used++
	if bits.Len32(h.used>>firstPart) >= len(h.table) {
		panic(fmt.Sprintf("pool: more than %d blocks", h.used))
	}
	h.grow(h.used)
	return spread(h.used)
}

// spread reorders the numbers within each group of 64: first the even numbers, then the odd ones.
// Headers that are made one after the other often go to goroutines that run at the same time. With
// spread they lie two cache lines apart. In neighbouring lines the goroutines would slow each other
// down, because processors fetch lines in pairs.
func spread(n uint32) uint32 { return n&^63 | n<<1&62 | n>>5&1 }

// drop keeps a header for the next call of new. The generation goes on, so that a block that was
// given back before is still recognised.
func (h *headers) drop(i uint32) {
	at := h.at(i)
	at.addr, at.size, at.free = 0, 0, false
	at.left = h.spare
	h.spare = i
}
