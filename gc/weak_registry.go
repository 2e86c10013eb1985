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
// alive. After each cycle its [Collector] walks it and has the memory of the dead
// given back, exactly once. An owner that gives back earlier calls Untrack.
//
// W is the argument of the function that gives an object's memory back. It must not refer to the
// owner, which would keep it alive for ever. A W without pointers costs the Go
// collector least. All methods are safe for concurrent use.
//
// Tracking an object takes a lock for a moment. The weak pointer that a walk
// needs takes about 0.4 us, with what the sweep later does for it. So small
// objects get theirs only once 16 younger ones have been tracked nearby, or a cycle
// is about to start: one that is given back by hand before that never needs it.
// Until then the registry keeps such an object alive, and a cycle of the
// runtime's own does not find it. Large ones get theirs at once.
type WeakRegistry[W any] struct {
	gate    *Gate
	give    func(slot Slot, w W, bytes int64)
	counted bool  // others give the memory back: see Count
	large   int64 // bytes from which on an object is weak at once
	shift   uint  // to a shard's number, from a hash of 64 bits
	shards  []shard[W]
}

// A Slot names one tracked object of a [WeakRegistry]. A slot that was given up is
// never mistaken for its successor: slots carry a generation of 32 bits.
type Slot uint64

const (
	// A chunk of 227 slots fills 8 KiB with the release and argument of Own.
	// A walk visits it under one lock.
	chunkLen  = 227
	chunkBits = 8  // of an index, for the place in its chunk
	youngLen  = 16 // objects per shard without a weak pointer
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
	free   uint32 // 1 + index of a slot that is not in use, the first of a list; 0 = none
	next   int    // where in young the next object goes
	used   int
	young  [youngLen]young
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
	what [chunkLen]owned[W]
	gen  [chunkLen]uint32 // odd while in use
	old  uint32           // number of weak pointers
}

// owned is what an object owns.
type owned[W any] struct {
	w W
	// Of a slot in use, the bytes and above them 1 + where in young it is, or 0. Of
	// a free slot, the next one in the list of the shard.
	bits uint64
}

const (
	bytesBits = 48
	bytesMask = 1<<bytesBits - 1
)

func (x *owned[W]) bytes() int64 { return int64(x.bits & bytesMask) }
func (x *owned[W]) young() int   { return int(x.bits >> bytesBits) }

func (x *owned[W]) set(bytes int64, young int) { x.bits = uint64(bytes) | uint64(young)<<bytesBits }

// NewWeakRegistry returns a registry whose objects own memory of the gate's space.
// Objects of at least large bytes are weak at once. Cycles of the gate's
// collector have give called for each dead object, on a goroutine of the
// collector's, outside all locks. Give may use the collector; whoever waits for
// the cycle does not wait for a give that takes long. If it panics, that is
// reported by [Collector.Err] and the others go on.
func NewWeakRegistry[W any](g *Gate, large int64, give func(slot Slot, w W, bytes int64)) *WeakRegistry[W] {
	r := new(WeakRegistry[W])
	r.init(g, large, give)
	return r
}

func (r *WeakRegistry[W]) init(g *Gate, large int64, give func(slot Slot, w W, bytes int64)) {
	logShards := min(shardBits, bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
	r.gate, r.give, r.large = g, give, large
	r.shards, r.shift = make([]shard[W], 1<<logShards), uint(64-logShards)
	g.c.addRegistry(r)
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

// Track says that owner owns bytes that w gives back. Owner must not be nil, and
// must have an identity: see [Own]. Bytes must be from 0 to [MaxBytes].
func Track[T, W any](r *WeakRegistry[W], owner *T, bytes int64, w W) Slot {
	checkOwner("Track", owner, bytes)
	return r.track(unsafe.Pointer(owner), bytes, w)
}

func (r *WeakRegistry[W]) track(p unsafe.Pointer, bytes int64, w W) Slot {
	// Objects of one span, which one thread allocates, share a shard.
	n := int(uint64(uintptr(p)>>13) * 0x9e3779b97f4a7c15 >> r.shift)
	s := &r.shards[n]
	s.mu.Lock()
	index := s.slot()
	c, i := s.at(index)
	x := &c.what[i]
	x.w = w
	c.gen[i]++
	slot := makeSlot(c.gen[i], n, index)
	s.used++
	if bytes >= r.large {
		x.set(bytes, 0)
		c.weak[i] = weak.Make((*byte)(p))
		c.old++
	} else {
		y := s.next
		s.next = (y + 1) % youngLen
		s.promote(y)
		s.young[y] = young{p, index}
		x.set(bytes, y+1)
	}
	s.mu.Unlock()
	if !r.gate.c.awake.Load() {
		r.gate.c.stayAwake()
	}
	return slot
}

// Untrack gives up a slot, without giving back its memory: that is for the
// caller now, and w and bytes are those given to Track. It returns false if
// the slot was given up before or a cycle has found its object dead.
func (r *WeakRegistry[W]) Untrack(slot Slot) (w W, bytes int64, ok bool) {
	s := &r.shards[slot.shard()]
	s.mu.Lock()
	c, i := s.at(slot.index())
	if ok = c.gen[i] == slot.gen(); ok {
		w, bytes = c.what[i].w, c.what[i].bytes()
		s.forget(slot.index(), c, i)
	}
	s.mu.Unlock()
	return w, bytes, ok
}

// has reports whether the slot is tracked still.
func (r *WeakRegistry[W]) has(slot Slot) bool {
	s := &r.shards[slot.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	c, i := s.at(slot.index())
	return c.gen[i] == slot.gen()
}

// setBytes changes the bytes of a tracked object, and returns those that it had. It
// returns false if the slot was given up before or a cycle has found its object dead.
func (r *WeakRegistry[W]) setBytes(slot Slot, bytes int64) (before int64, ok bool) {
	s := &r.shards[slot.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	c, i := s.at(slot.index())
	if c.gen[i] != slot.gen() {
		return 0, false
	}
	x := &c.what[i]
	before = x.bytes()
	x.set(bytes, x.young())
	return before, true
}

// at returns where the slot with an index is.
func (s *shard[W]) at(index uint32) (c *chunk[W], i uint32) {
	return s.chunks[index>>chunkBits], index & (1<<chunkBits - 1)
}

// slot returns a free slot.
func (s *shard[W]) slot() uint32 {
	if s.free == 0 {
		s.grow()
	}
	index := s.free - 1
	c, i := s.at(index)
	s.free = uint32(c.what[i].bits)
	return index
}

// grow adds a chunk of free slots. There are none.
func (s *shard[W]) grow() {
	base := uint32(len(s.chunks)) << chunkBits
	if base >= 1<<indexBits {
		panic(fmt.Sprintf("gc: registry is full: %d objects in one shard", s.used))
	}
	c := new(chunk[W])
	s.chunks = append(s.chunks, c)
	for i := uint32(chunkLen); i > 0; i-- {
		c.what[i-1].bits = uint64(s.free)
		s.free = base + i
	}
}

// forget frees a slot that is in use.
func (s *shard[W]) forget(index uint32, c *chunk[W], i uint32) {
	if y := c.what[i].young(); y != 0 {
		s.young[y-1] = young{}
	} else {
		c.weak[i] = weak.Pointer[byte]{}
		c.old--
	}
	c.what[i] = owned[W]{bits: uint64(s.free)}
	c.gen[i]++
	s.used--
	s.free = index + 1
}

// promote gives the young object at y, if there is one, its weak pointer.
func (s *shard[W]) promote(y int) {
	o := s.young[y]
	if o.owner == nil {
		return
	}
	c, i := s.at(o.index)
	c.weak[i] = weak.Make((*byte)(o.owner))
	c.what[i].set(c.what[i].bytes(), 0)
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

// remains are what dead objects owned.
type remains[W any] struct {
	r   *WeakRegistry[W]
	all []dead[W]
}

type dead[W any] struct {
	slot Slot
	w    W
	size int64
}

func (d *remains[W]) bytes(i int) int64 { return d.all[i].size }
func (d *remains[W]) give(i int)        { d.r.give(d.all[i].slot, d.all[i].w, d.all[i].size) }

// walk has what belongs to dead objects given back. It holds a shard's lock for one
// chunk at a time.
func (r *WeakRegistry[W]) walk(cycle *collection) {
	var found []dead[W]
	for i := range r.shards {
		s := &r.shards[i]
		for n, more := 0, true; more; n++ {
			s.mu.Lock()
			if more = n < len(s.chunks); more {
				found = s.collectDead(i, n, found)
			}
			s.mu.Unlock()
			if len(found) >= chunkLen || len(found) > 0 && !more {
				cycle.found(&batch{gate: r.gate, dead: &remains[W]{r, found}, counted: r.counted, n: len(found)})
				found = nil
			}
		}
	}
}

// collectDead frees the slots of chunk n whose objects are dead, and appends what they
// owned to found. The shard has the number given.
func (s *shard[W]) collectDead(number, n int, found []dead[W]) []dead[W] {
	c := s.chunks[n]
	if c.old == 0 {
		return found
	}
	for i := range c.weak {
		p := c.weak[i]
		if p == (weak.Pointer[byte]{}) || p.Value() != nil {
			continue
		}
		if found == nil {
			found = make([]dead[W], 0, min(2*chunkLen, int(c.old)+chunkLen))
		}
		index := uint32(n)<<chunkBits | uint32(i)
		found = append(found, dead[W]{makeSlot(c.gen[i], number, index), c.what[i].w, c.what[i].bytes()})
		s.forget(index, c, uint32(i))
	}
	return found
}
