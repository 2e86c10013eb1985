package gc

import (
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Own says that owner holds bytes of memory outside the Go heap, which
// release(arg) gives back: memory of a C library, a mapping, a handle. From then
// on the memory counts towards the collector's pressure. Some cycle after owner
// has become unreachable calls release, once, on a goroutine of the collector's.
// It has the shape of [runtime.AddCleanup], and its order: a finalizer of owner runs
// before the release (with Go 1.26 or later; older runtimes do not say when
// finalizers have run). It differs in one thing: a finalizer that makes owner reachable again
// does not keep the memory. If a finalizer or a cleanup of owner gives the memory back, take [Count].
//
// Arg and what release refers to must not lead to owner, which would keep it
// alive for ever. Own panics where it sees that: an arg that is owner or points
// into it, and a release that is a method value of owner; it logs a
// closure that seems to have captured owner. Pass what the release needs, such as the C pointer, as arg.
// A release may take any lock, take its time, and use the collector.
//
// Owner must point to an object of its own, in which Own finds a pointer or at
// least 16 bytes: smaller ones share memory with others and die with them. Own
// panics on those, on nil, on a release that is nil, and on bytes below 0 or
// above [MaxBytes].
//
// If the policy says so, Own starts a cycle. The memory exists already, so that
// Own never refuses it, and the collector's limit is a goal. A caller waits for
// the cycle under way at most as [Caps] says.
//
// Own and Release together take 0.18 us where few others are made in between, and
// 0.6 us more where owner needs a weak pointer, which objects of 4 KiB and more get at
// once. (Two cores of an Intel Xeon, Go 1.26.8, results/2026-11-22-embedding.)
func Own[T, A any](c *Collector, owner *T, bytes int64, release func(A), arg A) Handle {
	// The chain from here to the release: cleanupsOf (the registry for this type of argument), ownWith, track;
	// then, once a cycle's mark has ended, walk (the weak pointer is nil), found, worker.take, giveBack of releases,
	// giveBack of cleanups, release(arg). The indirections between (handles, walker, batch.dead, give) are why Own
	// does not allocate.
	checkOwner("Own", owner, bytes)
	r := cleanupsOf[A](c.own())
	checkRelease(c, owner, release, &arg, r.pointers)
	return ownWith(r, owner, bytes, cleanup[A]{release, arg})
}

// Count says that owner holds bytes of memory outside the Go heap, which a finalizer or a cleanup
// of owner gives back: that of a binding which keeps its own. It counts as [Own] does, until
// some cycle has found owner dead and the finalizers and cleanups that were due then have run. The
// zero Handle's methods apply: Release says that the memory is given back already. It panics on what
// Own panics on.
func Count[T any](c *Collector, owner *T, bytes int64) Handle {
	checkOwner("Count", owner, bytes)
	return ownWith(cleanupsOf[countOnly](c.own()), owner, bytes, cleanup[countOnly]{release: func(countOnly) {}})
}

// countOnly is the argument of those whose memory others give back.
type countOnly struct{}

func ownWith[T, A any](r *cleanups[A], owner *T, bytes int64, x cleanup[A]) Handle {
	o, c := r.o, r.gate.c
	gross := o.add(bytes)
	slot := r.track(unsafe.Pointer(owner), bytes, x)
	c.samples.choose(r, slot, bytes, gross, &c.settled)
	if c.recording.Load() {
		c.recordAlloc(r.id(slot), bytes, siteOf(), r.o.space)
	}
	runtime.KeepAlive(owner) // or it could be found dead before that
	return Handle{r, slot}
}

// A Handle is a claim to memory that was given to [Own]. It may be dropped.
// The zero value owns nothing. Its methods are safe for concurrent use. As long
// as the program uses a handle, it should keep the owner alive
// ([runtime.KeepAlive]): a cycle releases the memory of a dead one.
type Handle struct {
	in   handles
	slot Slot
}

// handles are the cleanups of one type.
type handles interface {
	release(Slot) bool
	resize(Slot, int64) bool
	has(Slot) bool
}

// Release gives the memory back now, on the caller's goroutine. It returns
// false, and does nothing, if that has happened before.
func (h Handle) Release() bool { return h.in != nil && h.in.release(h.slot) }

// Resize says that the owner now holds so many bytes, as after a realloc. It may
// start a cycle, as Own does. It returns false, and does nothing, if the memory has
// been given back. It panics on bytes that Own refuses.
func (h Handle) Resize(bytes int64) bool { return h.in != nil && h.in.resize(h.slot, bytes) }

// A cleanup gives an owner's memory back.
type cleanup[A any] struct {
	release func(A)
	arg     A
}

// cleanups are the owners whose releases take an A.
type cleanups[A any] struct {
	WeakRegistry[cleanup[A]]
	o        *ownership
	number   int       // among the types
	pointers []uintptr // where an A has them
}

func (r *cleanups[A]) release(slot Slot) bool {
	x, bytes, ok := r.Untrack(slot)
	if ok {
		r.giveBack(slot, x, bytes, trace.FreeExplicit)
	}
	return ok
}

// giveBack calls the release, which may panic.
func (r *cleanups[A]) giveBack(slot Slot, x cleanup[A], bytes int64, why uint32) {
	defer func() {
		r.o.giveBack(bytes)
		if c := r.o.gate.c; c.recording.Load() {
			c.recordFree(r.id(slot), bytes, why, r.o.space)
		}
	}()
	x.release(x.arg)
}

// id returns the identity of a slot in a recording: pools count up from 0, and leave
// the highest bit to us.
func (r *cleanups[A]) id(slot Slot) uint64 {
	return 1<<63 | uint64(r.number&(1<<7-1))<<56 | uint64(slot)&(1<<56-1)
}

func (r *cleanups[A]) resize(slot Slot, bytes int64) bool {
	checkBytes("Resize", bytes)
	before, ok := r.setBytes(slot, bytes)
	switch {
	case !ok:
		return false
	case bytes > before:
		r.o.add(bytes - before)
	default:
		r.o.giveBack(before - bytes)
	}
	if c := r.o.gate.c; c.recording.Load() {
		c.recordFree(r.id(slot), before, trace.FreeExplicit, r.o.space)
		c.recordAlloc(r.id(slot), bytes, siteOf(), r.o.space)
	}
	return true
}

// ownLarge is the size from which on what Own is given is weak at once, so that
// Go's own cycles find it as they would without us. Below it the 16 youngest of
// each of the registry's shards may be missed: at most 4 MiB in all.
const ownLarge = 4 << 10

// cleanupsOf returns the owners whose releases take an A. There are few types of
// arguments in a program, so that a list will do.
func cleanupsOf[A any](o *ownership) *cleanups[A] {
	if list := o.kinds.Load(); list != nil {
		for _, k := range *list {
			if r, ok := k.(*cleanups[A]); ok {
				return r
			}
		}
	}
	return addCleanups[A](o)
}

func addCleanups[A any](o *ownership) *cleanups[A] {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []handles
	if old := o.kinds.Load(); old != nil {
		list = *old
	}
	for _, k := range list {
		if r, ok := k.(*cleanups[A]); ok {
			return r
		}
	}
	r := &cleanups[A]{o: o, number: len(list), pointers: findPointers(nil, reflect.TypeFor[A](), 0)}
	_, r.counted = any(*new(A)).(countOnly)
	r.init(o.gate, ownLarge, func(slot Slot, x cleanup[A], bytes int64) { r.giveBack(slot, x, bytes, trace.FreeCycle) })
	list = append(list[:len(list):len(list)], r)
	o.kinds.Store(&list)
	return r
}

// An ownership counts the memory that was given to Own and Account. It is a Source.
type ownership struct {
	space           pressure.Space
	limit           atomic.Int64 // 0 = none
	live, allocated atomic.Int64
	accounted       accounted    // by Account
	owed            atomic.Int64 // ns of assists that are not paid yet
	futile          atomic.Int64 // bytes that were live when a cycle last made too little room; 0 = none did
	gate            *Gate

	kinds     atomic.Pointer[[]handles] // a *cleanups[A] for each A
	mu        sync.Mutex                // held to add to kinds, and for libraries
	libraries []*library
}

func newOwnership(c *Collector, cfg Config) *ownership {
	o := &ownership{space: cfg.Space}
	o.accounted.o = o
	o.limit.Store(cfg.Limit)
	o.gate = newGate(c, o)
	o.gate.soft = cfg.Caps.Assist >= 0
	o.gate.open()
	c.addRegistry((*accountWalk)(o))
	c.owned.Store(o)
	return o
}

// Sample implements [Source].
func (o *ownership) Sample() pressure.Sample {
	live := o.live.Load()
	return pressure.Sample{Space: o.space, Live: live, Reserved: live, Limit: o.limit.Load()}
}

// Allocated implements [Source].
func (o *ownership) Allocated() int64 { return o.allocated.Load() }

// add counts bytes, and returns how many were counted so far. It asks the policy before, and holds the caller for its
// share of a cycle's work after that: what has asked for a cycle is no growth since that cycle, which would ask for another one, in vain.
func (o *ownership) add(bytes int64) (gross int64) {
	o.gate.Allocating(o.live.Load(), bytes)
	if limit := o.limit.Load(); limit > 0 && o.live.Load() > limit-bytes {
		if o.gate.soft {
			o.gate.c.beginFor(o.gate, o.live.Load())
		} else {
			o.makeRoom(bytes, limit)
		}
	}
	gross = o.take(bytes)
	if r := o.gate.c.current.Load(); r != nil && o.gate.soft {
		runtime.LockOSThread() // a C allocator serves each thread from an arena of its own, and leaves there what is freed
		defer runtime.UnlockOSThread()
		o.gate.c.giveWay(r)
		o.assist(r, bytes)
	}
	return gross
}

// makeRoom waits for the cycle under way, or else for a new one. A program that
// is above its limit with reachable memory gains nothing by that: it is
// tried again only when an eighth of the limit has come on top.
func (o *ownership) makeRoom(bytes, limit int64) {
	fits := func() bool { return o.live.Load() <= limit-bytes }
	if o.gate.c.Wait() && fits() {
		return
	}
	if last := o.futile.Load(); last > 0 && o.live.Load()-last < limit/8 {
		return
	}
	o.gate.c.Collect(policy.TriggerRefusal)
	if fits() {
		o.futile.Store(0)
	} else {
		o.futile.Store(o.live.Load())
	}
}

// take counts bytes, and returns how many were counted so far.
func (o *ownership) take(bytes int64) (gross int64) {
	o.live.Add(bytes)
	return o.allocated.Add(bytes)
}

// giveBack counts bytes that are no more.
func (o *ownership) giveBack(bytes int64) { o.live.Add(-bytes) }

// SetLimit sets the budget of the memory that is given to Own and Account, in
// bytes; 0 means none. It is a goal: see [Own]. It panics below 0.
func (c *Collector) SetLimit(bytes int64) {
	checkBytes("SetLimit", bytes)
	c.own().limit.Store(bytes)
	c.mu.Lock()
	defer c.unlock()
	c.changed()
}
