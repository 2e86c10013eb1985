package pool

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// guardBytes lie on either side of a block under poison; they keep it aligned.
const guardBytes = quantum

const (
	guardPattern = 0xfd // around blocks
	freePattern  = 0xdd // in all memory that is not handed out
)

// poison finds stray writes: all memory of the pool that is not handed out has
// one pattern, the guards around blocks another. Guards are checked when a block
// is freed, the rest when it is handed out again. A wrong byte panics with the
// sites of those who used the memory last.
type poison struct {
	mu    sync.Mutex
	last  [4096]grave // ring of the blocks freed last
	freed uint64
}

// A grave remembers a freed block.
type grave struct {
	addr        uintptr
	size        int64
	alloc, free stack
}

func memory(addr uintptr, n int64) []byte { return unsafe.Slice((*byte)(pointer(addr)), n) }

// strayByte returns the index of the first byte that is not pattern, or -1.
func strayByte(b []byte, pattern byte) int {
	for i, x := range b {
		if x != pattern {
			return i
		}
		if i+1 < len(b) && bytes.Equal(b[i+1:], b[i:len(b)-1]) {
			return -1 // each byte equals the one before it
		}
	}
	return -1
}

func (q *poison) fill(addr uintptr, size int64) { fill(memory(addr, size), freePattern) }

// handOut checks that nobody wrote to the piece since it was freed, and puts
// guards on it.
func (q *poison) handOut(h *header, bytes int64) {
	m := memory(h.addr, h.size)
	if at := strayByte(m, freePattern); at >= 0 {
		panic(fmt.Sprintf("pool: write after free: byte %#x is %#x; %s", h.addr+uintptr(at), m[at], q.blame(h.addr+uintptr(at))))
	}
	fill(m[:guardBytes], guardPattern)
	fill(m[guardBytes+bytes:], guardPattern)
}

// takeBack checks the guards of a block of bytes and fills it.
func (q *poison) takeBack(h *header, bytes int64, sites *sites) {
	m := memory(h.addr, h.size)
	before, after := m[:guardBytes], m[guardBytes+bytes:]
	if at := strayByte(before, guardPattern); at >= 0 {
		panic(overrun(sites.at(h.site), bytes, at-guardBytes))
	}
	if at := strayByte(after, guardPattern); at >= 0 {
		panic(overrun(sites.at(h.site), bytes, int(bytes)+at))
	}
	fill(m, freePattern)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last[q.freed%uint64(len(q.last))] = grave{h.addr, h.size, sites.at(h.site).stack, here()}
	q.freed++
}

func overrun(x *site, bytes int64, at int) string {
	return fmt.Sprintf("pool: write outside a block of %v: at byte %d; allocated at %s, freed at %s",
		pressure.Bytes(bytes), at, innermost(x.text()), here().site())
}

// blame names those who last had the byte at addr.
func (q *poison) blame(addr uintptr) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := uint64(1); n <= min(q.freed, uint64(len(q.last))); n++ {
		g := q.last[(q.freed-n)%uint64(len(q.last))]
		if addr >= g.addr && addr < g.addr+uintptr(g.size) {
			return fmt.Sprintf("the block there was allocated at %s, freed at %s", g.alloc.site(), g.free.site())
		}
	}
	return "no recent block was there"
}
