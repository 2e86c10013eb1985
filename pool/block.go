package pool

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A Block is memory that a pool has handed out. It is a plain value without
// pointers: the Go collector never looks at it, and dropping it leaks the
// memory. The zero value is no block.
type Block struct {
	Addr  uintptr // first byte, aligned to 512 bytes
	Bytes int64   // as asked for; the pool counts it rounded up to 512
	ref   uint64  // generation and number of the header
}

// ID returns the identity of the block, which no other block of its pool ever
// has, as the traces name it.
func (b Block) ID() uint64 { return b.ref }

// pointer turns the address of memory outside the Go heap into a pointer.
func pointer(addr uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// A header describes one piece of a segment: 64 bytes, no pointers, so that the
// Go collector does not look into a million of them. Headers are never moved or
// given back; number 0 is none. A piece is in one of three places:
//
//	live    handed out           gen is odd
//	racked  in a front's rack    gen is even, link chains the rack
//	free    in the core          gen is even, free is set, left and right are its tree
type header struct {
	addr        uintptr
	size        int64         // a multiple of 512
	prev, next  uint32        // neighbours in the segment, by address; guarded by the core
	left, right uint32        // children in a tree; left links a rack
	gen         atomic.Uint32 // odd while handed out
	stream      uint32        // whose work may use it without waiting
	site        uint32        // where it was allocated, if that was sampled; 0 = not
	free        bool          // in the core; guarded by the core
	small       bool          // of a small segment
	used        atomic.Uint32 // another stream that uses it, + 1; manyStreams; 0 = none
}

// headers is a growing table that can be read while it grows: table k holds
// 2^(k+12) headers and is never moved.
type headers struct {
	tables [20]atomic.Pointer[[]header]
	used   uint32 // guarded by the core
	spare  uint32 // chain of headers to use again, through left; guarded by the core
}

const firstTable = 12 // log2 of the first table's length

func (h *headers) at(i uint32) *header {
	k := bits.Len32(i >> firstTable)
	t := *h.tables[k].Load()
	if k > 0 {
		i -= 1 << (firstTable + k - 1)
	}
	return &t[i]
}

// find is at for numbers that may be wrong; nil if there is none such.
func (h *headers) find(i uint32) *header {
	k := bits.Len32(i >> firstTable)
	if i == 0 || k >= len(h.tables) || h.tables[k].Load() == nil {
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
	k := bits.Len32(h.used >> firstTable)
	if k >= len(h.tables) {
		panic(fmt.Sprintf("pool: more than %d blocks", h.used))
	}
	if h.tables[k].Load() == nil {
		t := make([]header, 1<<(firstTable+max(k-1, 0)))
		h.tables[k].Store(&t)
	}
	return spread(h.used)
}

// spread maps 0..63 of every 64 to the even numbers and then to the odd ones:
// headers made one after the other, which goroutines that run at the same time
// often get, then lie two cache lines apart. Neighbouring lines are fetched in
// pairs, so that writers of the two hinder each other.
func spread(n uint32) uint32 { return n&^63 | n<<1&62 | n>>5&1 }

// drop keeps a header for the next new. Its generation goes on, so that stale
// blocks stay known as such.
func (h *headers) drop(i uint32) {
	at := h.at(i)
	at.addr, at.size, at.free = 0, 0, false
	at.left = h.spare
	h.spare = i
}
