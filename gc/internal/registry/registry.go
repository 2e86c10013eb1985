// Package registry tracks Go objects that own outside memory, and gives the memory of dead objects
// back.
package registry

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// A Registry tracks Go objects that own outside memory: see gc.WeakRegistry.
//
// A weak pointer takes about 0.4 us, with the work that it makes for a later sweep. An object that
// is given back by hand while it is young never needs one.
type Registry[W any] struct {
	give   func(slot Slot, w W, bytes int64)
	large  int64
	shift  uint // from a hash of 64 bits to a shard's number
	shards []shard[W]
}

// A Slot names one tracked object of a [Registry], by the generation, the shard and the index.
type Slot uint64

const (
	// A chunk of 227 slots with the release and argument of Own fills 8 KiB. A walk holds the lock
	// of a shard for one chunk.
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
	free   []uint32 // indexes of the slots that are not in use
	next   uint     // where in young the next object goes, modulo its length
	young  [youngLen]young
	_      [64]byte
}

// A young object has no weak pointer yet. This reference keeps it alive until it gets one.
type young struct {
	owner unsafe.Pointer
	index uint32
}

// A chunk holds slots, field by field, because a walk reads only the weak pointers.
type chunk[W any] struct {
	weak [chunkLen]weak.Pointer[byte] // zero while the slot is free, or its object young
	what [chunkLen]owned[W]
	gen  [chunkLen]uint32 // odd while in use
	old  uint32           // number of weak pointers
}

// owned is the memory of an object.
type owned[W any] struct {
	w     W
	bytes int64
}

// Init makes the registry ready. Give gives the memory of an object back. Objects of at least large
// bytes get a weak pointer at once.
func (r *Registry[W]) Init(large int64, give func(slot Slot, w W, bytes int64)) {
	r.give = give
	logShards := min(shardBits, bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
	r.large, r.shards, r.shift = large, make([]shard[W], 1<<logShards), uint(64-logShards)
}

// Len returns the number of tracked objects.
func (r *Registry[W]) Len() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		n += len(s.chunks)*chunkLen - len(s.free)
		s.mu.Unlock()
	}
	return n
}

// Track registers the object at p as the owner of bytes that w gives back.
func (r *Registry[W]) Track(p unsafe.Pointer, bytes int64, w W) Slot {
	// Objects of one span, which one thread allocates, share a shard.
	n := int(uint64(uintptr(p)>>13) * 0x9e3779b97f4a7c15 >> r.shift)
	s := &r.shards[n]
	s.mu.Lock()
	if len(s.free) == 0 {
		s.grow()
	}
	index := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	c, i := s.at(index)
	c.what[i] = owned[W]{w, bytes}
	c.gen[i]++
	slot := makeSlot(c.gen[i], n, index)
	if bytes >= r.large {
		s.promote(young{p, index})
	} else {
		oldest := &s.young[s.next%youngLen]
		s.promote(*oldest)
		*oldest = young{p, index}
		s.next++
	}
	s.mu.Unlock()
	return slot
}

// find locks the shard of a slot and returns the slot's place. The caller unlocks the shard.
func (r *Registry[W]) find(slot Slot) (s *shard[W], c *chunk[W], i uint32, ok bool) {
	s = &r.shards[slot.shard()]
	s.mu.Lock()
	c, i = s.at(slot.index())
	return s, c, i, c.gen[i] == slot.gen()
}

// Untrack gives up a slot and returns the w and bytes of Track, without giving the memory back. Here
// and below, ok is false if the slot was given up before or a cycle has found its object dead.
func (r *Registry[W]) Untrack(slot Slot) (w W, bytes int64, ok bool) {
	s, c, i, ok := r.find(slot)
	if ok {
		w, bytes = c.what[i].w, c.what[i].bytes
		s.forget(slot.index(), c, i)
	}
	s.mu.Unlock()
	return w, bytes, ok
}

// Holds returns the bytes of a tracked object.
func (r *Registry[W]) Holds(slot Slot) (bytes int64, ok bool) {
	s, c, i, ok := r.find(slot)
	defer s.mu.Unlock()
	if ok {
		bytes = c.what[i].bytes
	}
	return bytes, ok
}

// SetBytes changes the bytes of a tracked object, and returns those before. An object that becomes
// large gets its weak pointer.
func (r *Registry[W]) SetBytes(slot Slot, bytes int64) (before int64, ok bool) {
	s, c, i, ok := r.find(slot)
	defer s.mu.Unlock()
	if ok {
		before, c.what[i].bytes = c.what[i].bytes, bytes
		if bytes >= r.large && c.weak[i] == (weak.Pointer[byte]{}) {
			s.promote(s.takeYoung(slot.index()))
		}
	}
	return before, ok
}

// Each calls f for each tracked object, with a shard's lock held.
func (r *Registry[W]) Each(f func(slot Slot, bytes int64)) {
	for number := range r.shards {
		s := &r.shards[number]
		s.mu.Lock()
		for n, c := range s.chunks {
			for i := range c.what {
				if c.gen[i]%2 != 0 {
					f(makeSlot(c.gen[i], number, uint32(n)<<chunkBits|uint32(i)), c.what[i].bytes)
				}
			}
		}
		s.mu.Unlock()
	}
}

// at returns the place of the slot with an index.
func (s *shard[W]) at(index uint32) (c *chunk[W], i uint32) {
	return s.chunks[index>>chunkBits], index & (1<<chunkBits - 1)
}

// grow adds a chunk of free slots.
func (s *shard[W]) grow() {
	base := uint32(len(s.chunks)) << chunkBits
	if base >= 1<<indexBits {
		panic(fmt.Sprintf("gc: registry is full: %d objects in one shard", len(s.chunks)*chunkLen))
	}
	s.chunks = append(s.chunks, new(chunk[W]))
	for i := uint32(chunkLen); i > 0; i-- {
		s.free = append(s.free, base+i-1)
	}
}

// forget frees a slot that is in use.
func (s *shard[W]) forget(index uint32, c *chunk[W], i uint32) {
	if c.weak[i] == (weak.Pointer[byte]{}) {
		s.takeYoung(index)
	} else {
		c.weak[i] = weak.Pointer[byte]{}
		c.old--
	}
	c.what[i] = owned[W]{}
	c.gen[i]++
	s.free = append(s.free, index)
}

// takeYoung removes a young object from the list of young ones.
func (s *shard[W]) takeYoung(index uint32) (y young) {
	for n := s.next - 1; ; n-- { // the youngest is the likeliest
		if at := &s.young[n%youngLen]; at.index == index && at.owner != nil {
			y, *at = *at, young{}
			return y
		}
	}
}

// promote gives an object that was young its weak pointer. It ignores the zero value.
func (s *shard[W]) promote(y young) {
	if y.owner != nil {
		c, i := s.at(y.index)
		c.weak[i] = weak.Make((*byte)(y.owner))
		c.old++
	}
}

// PromoteAll gives every young object its weak pointer, so that the next cycle can find it dead.
func (r *Registry[W]) PromoteAll() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for _, y := range s.young {
			s.promote(y)
		}
		s.young = [youngLen]young{}
		s.mu.Unlock()
	}
}

// dead is the memory of several dead objects. It is a [Remains].
type dead[W any] struct {
	r   *Registry[W]
	all []remains[W]
}

type remains[W any] struct {
	slot Slot
	owned[W]
}

func (d *dead[W]) Len() int          { return len(d.all) }
func (d *dead[W]) Bytes(i int) int64 { return d.all[i].bytes }
func (d *dead[W]) Give(i int)        { d.r.give(d.all[i].slot, d.all[i].w, d.all[i].bytes) }

// Walk finds the dead objects, gives up their slots, and passes their memory to found in several
// parts. It calls found under no lock.
func (r *Registry[W]) Walk(found func(Remains)) {
	var list []remains[W]
	for i := range r.shards {
		s := &r.shards[i]
		for n, more := 0, true; more; n++ {
			s.mu.Lock()
			if more = n < len(s.chunks); more {
				list = s.collectDead(i, n, list)
			}
			s.mu.Unlock()
			if len(list) >= chunkLen || len(list) > 0 && !more {
				found(&dead[W]{r, list})
				list = nil
			}
		}
	}
}

// collectDead gives up the slots of chunk n whose objects are dead, and appends them to found.
func (s *shard[W]) collectDead(number, n int, found []remains[W]) []remains[W] {
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
			found = make([]remains[W], 0, min(2*chunkLen, int(c.old)+chunkLen))
		}
		index := uint32(n)<<chunkBits | uint32(i)
		found = append(found, remains[W]{makeSlot(c.gen[i], number, index), c.what[i]})
		s.forget(index, c, uint32(i))
	}
	return found
}
