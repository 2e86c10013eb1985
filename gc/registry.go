package gc

import (
	"unsafe"

	"github.com/eagergc/eagergc/gc/internal/registry"
)

// A WeakRegistry tracks Go objects that own outside memory, without keeping them alive. After each
// cycle its [Collector] walks it and gives the memory of dead objects back, exactly once. An owner
// that gives its memory back earlier calls Untrack.
//
// W is the argument of the function that gives an object's memory back. It must not refer to the
// owner, which it would keep alive for ever. A W without pointers costs the Go collector least. All
// methods are safe for concurrent use.
//
// A small object gets its weak pointer once 16 younger ones have been tracked nearby, or when a
// cycle is about to begin. Until then the registry keeps the object alive.
type WeakRegistry[W any] struct {
	objects registry.Registry[W]
	gate    *Gate
	counted bool // others give the memory back: see Count
}

// A Slot names one tracked object of a [WeakRegistry], and not its successor in the same place.
type Slot = registry.Slot

// NewWeakRegistry returns a registry whose objects own memory of the gate's space. Objects of at
// least large bytes get a weak pointer at once. Cycles of the gate's collector call give for each
// dead object, on a goroutine of the collector's, under no lock. Give may use the collector and take
// long. [Collector.Err] reports a panic of give, and the other objects are still given back.
func NewWeakRegistry[W any](g *Gate, large int64, give func(slot Slot, w W, bytes int64)) *WeakRegistry[W] {
	r := new(WeakRegistry[W])
	r.init(g, large, give)
	return r
}

func (r *WeakRegistry[W]) init(g *Gate, large int64, give func(slot Slot, w W, bytes int64)) {
	r.gate = g
	r.objects.Init(large, give)
	g.c.addWalker(r)
}

// Close makes cycles forget the registry. They do not give back memory that is still tracked.
func (r *WeakRegistry[W]) Close() { r.gate.c.dropWalker(r) }

// Len returns the number of tracked objects.
func (r *WeakRegistry[W]) Len() int { return r.objects.Len() }

// Track registers owner as the owner of bytes that w gives back. Owner must not be nil, and must
// have an identity: see [Own]. Bytes must be from 0 to [MaxBytes].
func Track[T, W any](r *WeakRegistry[W], owner *T, bytes int64, w W) Slot {
	checkOwner("Track", owner, bytes)
	return r.track(unsafe.Pointer(owner), bytes, w)
}

func (r *WeakRegistry[W]) track(p unsafe.Pointer, bytes int64, w W) Slot {
	slot := r.objects.Track(p, bytes, w)
	if !r.gate.c.awake.Load() {
		r.gate.c.stayAwake()
	}
	return slot
}

// Untrack gives up a slot, and returns the w and bytes of Track. The caller gives the memory back.
// Untrack returns false if the slot was given up before or a cycle has found its object dead.
func (r *WeakRegistry[W]) Untrack(slot Slot) (w W, bytes int64, ok bool) {
	return r.objects.Untrack(slot)
}

func (r *WeakRegistry[W]) promoteAll() { r.objects.PromoteAll() }

// walk passes the memory of dead objects to the releases.
func (r *WeakRegistry[W]) walk(cycle *collection) {
	r.objects.Walk(func(dead registry.Remains) {
		r.gate.c.releases.Found(&cycle.released, &r.gate.returns, dead, r.counted)
	})
}
