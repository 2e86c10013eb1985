package gc

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// A WeakRegistry knows which Go objects own outside memory, without keeping them
// alive. After each cycle its [Collector] walks it and gives back what belonged
// to the dead, exactly once; an owner that gives back earlier calls Untrack.
//
// W is what it takes to give an object's memory back. It must not refer to the
// owner, which would keep it alive for ever. A W without pointers costs the Go
// collector least. All methods are safe for concurrent use.
//
// Tracking an object costs one short critical section. The weak pointer that a
// walk needs is expensive (about 0.4 us with what the sweep later does for it), so it is
// made only once 16 younger objects have been tracked nearby or a cycle
// is about to start: an object that is given back by hand before that never
// needs one. The runtime's own cycles miss objects that young; the next one
// finds them.
type WeakRegistry[W any] struct {
	gate   *Gate
	give   func(w W, bytes int64)
	shift  uint // to a shard's number, from a hash of 64 bits
	shards []shard[W]
}

// A Slot names one tracked object of a [WeakRegistry]. A slot that was given up is
// never mistaken for its successor: slots carry a generation of 32 bits.
type Slot uint64

const (
	chunkLen  = 256 // slots that a walk visits under one lock
	youngLen  = 16  // objects per shard without a weak pointer
	shardBits = 6
	indexBits = 32 - shardBits
)

func makeSlot(gen uint32, shard int, index uint32) Slot {
	return Slot(gen)<<32 | Slot(shard)<<indexBits | Slot(index)
}

func (s Slot) gen() uint32   { return uint32(s >> 32) }
func (s Slot) shard() int    { return int(s>>indexBits) & (1<<shardBits - 1) }
func (s Slot) index() uint32 { return uint32(s) & (1<<indexBits - 1) }

// A shard is a part of a registry with its own lock.
type shard[W any] struct {
	mu     sync.Mutex
	chunks []*chunk[W]
	free   []uint32 // indices of slots that are not in use
	young  [youngLen]young
	next   int // where in young the next object goes
	used   int
	_      [64]byte
}

// A young object is tracked, but has no weak pointer yet: until it gets one,
// this reference keeps it alive.
type young struct {
	owner unsafe.Pointer
	index uint32
}

// A chunk holds slots, field by field: a walk reads only the weak pointers.
type chunk[W any] struct {
	weak [chunkLen]weak.Pointer[byte] // zero while the slot is free, or its object young
	meta [chunkLen]slotMeta[W]
	old  int // number of weak pointers
}

type slotMeta[W any] struct {
	w     W
	bytes int64
	gen   uint32 // odd while in use
	young int32  // 1 + where in young; 0 if it is not there
}

// NewWeakRegistry returns a registry whose objects own memory of the gate's space.
// Cycles of the gate's collector call give for each dead object, on a
// goroutine of their own, outside all locks; give must not call the collector.
// If it panics, that is reported by [Collector.Err] and the walk goes on.
func NewWeakRegistry[W any](g *Gate, give func(w W, bytes int64)) *WeakRegistry[W] {
	logShards := min(shardBits, bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
	r := &WeakRegistry[W]{gate: g, give: give, shards: make([]shard[W], 1<<logShards), shift: uint(64 - logShards)}
	g.c.addRegistry(r)
	return r
}

// Close makes cycles forget the registry. What is still tracked is left to its
// owners.
func (r *WeakRegistry[W]) Close() { r.gate.c.dropRegistry(r) }

// Len returns the number of tracked objects.
func (r *WeakRegistry[W]) Len() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		n += s.used
		s.mu.Unlock()
	}
	return n
}

// Track says that owner owns bytes that w gives back. It panics if owner is
// nil. Owner must be a pointer to a heap object of at least 16 bytes or with
// pointers in it: smaller ones share memory with others and die with them.
func Track[T, W any](r *WeakRegistry[W], owner *T, bytes int64, w W) Slot {
	if owner == nil {
		panic("gc: Track of nil")
	}
	p := unsafe.Pointer(owner)
	// Objects of one span, which one thread allocates, share a shard.
	n := int(uint64(uintptr(p)>>13) * 0x9e3779b97f4a7c15 >> r.shift)
	s := &r.shards[n]
	s.mu.Lock()
	index := s.slot()
	m := s.meta(index)
	m.w, m.bytes = w, bytes
	m.gen++
	s.used++
	y := s.next
	s.next = (y + 1) % youngLen
	s.promote(y)
	s.young[y] = young{p, index}
	m.young = int32(y + 1)
	slot := makeSlot(m.gen, n, index)
	s.mu.Unlock()
	return slot
}

// Untrack gives up a slot, without giving back what it owns: that is for the
// caller now, and w and bytes are what Track was given. It returns false if
// the slot was given up before or a cycle has found its object dead.
func (r *WeakRegistry[W]) Untrack(slot Slot) (w W, bytes int64, ok bool) {
	s := &r.shards[slot.shard()]
	s.mu.Lock()
	m := s.meta(slot.index())
	if ok = m.gen == slot.gen(); ok {
		w, bytes = m.w, m.bytes
		s.forget(slot.index(), m)
	}
	s.mu.Unlock()
	return w, bytes, ok
}

func (s *shard[W]) meta(index uint32) *slotMeta[W] {
	return &s.chunks[index/chunkLen].meta[index%chunkLen]
}

// slot returns a free slot.
func (s *shard[W]) slot() uint32 {
	if len(s.free) == 0 {
		base := uint32(len(s.chunks)) * chunkLen
		if base >= 1<<indexBits {
			panic(fmt.Sprintf("gc: registry is full: %d objects in one shard", s.used))
		}
		s.chunks = append(s.chunks, new(chunk[W]))
		for i := uint32(chunkLen); i > 0; i-- {
			s.free = append(s.free, base+i-1)
		}
	}
	last := len(s.free) - 1
	index := s.free[last]
	s.free = s.free[:last]
	return index
}

// forget frees a slot that is in use.
func (s *shard[W]) forget(index uint32, m *slotMeta[W]) {
	if m.young != 0 {
		s.young[m.young-1] = young{}
		m.young = 0
	} else {
		c := s.chunks[index/chunkLen]
		c.weak[index%chunkLen] = weak.Pointer[byte]{}
		c.old--
	}
	var none W
	m.w = none
	m.gen++
	s.used--
	s.free = append(s.free, index)
}

// promote gives the young object at y, if there is one, its weak pointer.
func (s *shard[W]) promote(y int) {
	o := s.young[y]
	if o.owner == nil {
		return
	}
	c := s.chunks[o.index/chunkLen]
	c.weak[o.index%chunkLen] = weak.Make((*byte)(o.owner))
	c.meta[o.index%chunkLen].young = 0
	c.old++
	s.young[y] = young{}
}

// promoteAll gives every young object its weak pointer, so that the next
// cycle can find it.
func (r *WeakRegistry[W]) promoteAll() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for y := range s.young {
			s.promote(y)
		}
		s.mu.Unlock()
	}
}

// A corpse is a dead object's memory.
type corpse[W any] struct {
	w     W
	bytes int64
}

// walk gives back what belongs to dead objects, counts it at the gate, and
// returns their number. It holds a shard's lock for one chunk at a time.
func (r *WeakRegistry[W]) walk(failed func(any)) (objects int) {
	var dead []corpse[W]
	for i := range r.shards {
		s := &r.shards[i]
		for n := 0; ; n++ {
			dead = dead[:0]
			s.mu.Lock()
			more := n < len(s.chunks)
			if more {
				dead = s.bury(n, dead)
			}
			s.mu.Unlock()
			if !more {
				break
			}
			for _, d := range dead {
				objects++
				r.giveBack(d, failed)
				r.gate.yield.Add(d.bytes)
			}
		}
	}
	return objects
}

// bury frees the slots of chunk n whose objects are dead and appends what they
// owned to dead.
func (s *shard[W]) bury(n int, dead []corpse[W]) []corpse[W] {
	c := s.chunks[n]
	if c.old == 0 {
		return dead
	}
	for i := range c.weak {
		p := c.weak[i]
		if p == (weak.Pointer[byte]{}) || p.Value() != nil {
			continue
		}
		m := &c.meta[i]
		dead = append(dead, corpse[W]{m.w, m.bytes})
		s.forget(uint32(n*chunkLen+i), m)
	}
	return dead
}

func (r *WeakRegistry[W]) giveBack(d corpse[W], failed func(any)) {
	defer func() {
		if e := recover(); e != nil {
			failed(e)
		}
	}()
	r.give(d.w, d.bytes)
}
