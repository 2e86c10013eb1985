package pool

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"github.com/eagergc/eagergc/pressure"
)

// guardBytes is the size of the guard on each side of a block under poison. It
// keeps the block aligned.
const guardBytes = quantum

const (
	guardPattern = 0xfd // around blocks
	freePattern  = 0xdd // in all memory that is not handed out
)

// poison finds stray writes. All memory of the pool that is not handed out is
// filled with one pattern, the guards around blocks with another. Guards are
// checked when a block is freed. The other pattern is checked when the memory is
// handed out again. At a wrong byte the pool panics with the sites that allocated
// and freed the memory last.
type poison struct {
	mu    sync.Mutex
	last  [4096]freedBlock // ring of the blocks that were freed last
	freed uint64           // number of blocks that were freed
}

type freedBlock struct {
	addr        uintptr
	size        int64
	alloc, free stack
}

func memory(addr uintptr, n int64) []byte { return unsafe.Slice((*byte)(pointer(addr)), n) }

// fill sets all bytes, by copies of those that are set already.
func fill(b []byte, v byte) {
	for n := copy(b, []byte{v}); n < len(b); {
		n += copy(b[n:], b[:min(n, 4096)])
	}
}

// strayByte returns the index of the first byte that differs from pattern, or -1.
func strayByte(b []byte, pattern byte) int {
	for i, x := range b {
		if x != pattern {
			return i
		}
		if i+1 < len(b) && bytes.Equal(b[i+1:], b[i:len(b)-1]) {
			return -1 // each later byte equals the one before it
		}
	}
	return -1
}

func (q *poison) fill(addr uintptr, size int64) { fill(memory(addr, size), freePattern) }

// handOut checks that nobody wrote to the piece since it was freed, and writes its
// guards.
func (q *poison) handOut(h *header, bytes int64) {
	m := memory(h.addr, h.size)
	if at := strayByte(m, freePattern); at >= 0 {
		panic(fmt.Sprintf("pool: write after free: byte %#x is %#x; %s", h.addr+uintptr(at), m[at], q.blame(h.addr+uintptr(at))))
	}
	fill(m[:guardBytes], guardPattern)
	fill(m[guardBytes+bytes:], guardPattern)
}

// takeBack checks the guards of a block and fills it with the pattern of free
// memory.
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
	q.last[q.freed%uint64(len(q.last))] = freedBlock{h.addr, h.size, sites.at(h.site).stack, here()}
	q.freed++
}

func overrun(x *site, bytes int64, at int) string {
	return fmt.Sprintf("pool: write outside a block of %v: at byte %d; allocated at %s, freed at %s",
		pressure.Bytes(bytes), at, pressure.SiteLine(x.text()), here().site())
}

// blame names the sites that allocated and freed the block at addr last.
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
