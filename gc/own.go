package gc

import (
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/eagergc/eagergc/gc/internal/observe"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Own registers owner as the owner of bytes outside the Go heap. Release(arg) gives them back, such
// as memory of a C library or a mapping. From then on the memory counts towards the collector's
// pressure. Once owner has become unreachable, a cycle calls release, once, on a goroutine of the
// collector. If a finalizer or a cleanup of owner gives the memory back, use [Count].
//
// Own has the shape and the order of [runtime.AddCleanup]: a finalizer of owner runs before the
// release. (Go versions before 1.26 do not say when finalizers have run.) One thing differs: a
// finalizer that makes owner reachable again does not keep the memory.
//
// Owner must not be reachable from arg or release, which would keep it alive for ever. Own panics on
// an arg that is owner or points into it, and on a release that is a method value of owner. It logs
// a closure that seems to have captured owner. Pass the values that the release needs, such as the
// C pointer, as arg. A release may take any lock, take any time, and use the collector.
//
// Owner must point to an object in the Go heap. If it points to C memory, or before Go 1.26 to a
// global variable, a later cycle ends the program. The object must contain a pointer or have at least
// 16 bytes. Smaller objects share memory with others and die with them. Own panics on these, on nil, on
// a nil release, and on bytes below 0 or above [MaxBytes].
//
// Own starts a cycle if the policy wants one, and holds the caller for no longer than [Caps] allow.
// The memory exists already, so Own never refuses it, and the collector's limit is a goal.
//
// Own and Release together take 0.18 us, and 0.6 us more with a weak pointer, which owners of 4 KiB
// and more get at once (two cores of an Intel Xeon, Go 1.26.8, results/2026-11-22-embedding).
func Own[T, A any](c *Collector, owner *T, bytes int64, release func(A), arg A) Handle {
	// CONTRIBUTING.md has the way from here to the release. Its indirections avoid allocations.
	checkOwner("Own", owner, bytes)
	r := cleanupsOf[A](c.own())
	checkRelease(c, owner, release, &arg, r.pointers)
	return ownWith(r, owner, bytes, cleanup[A]{release, arg})
}

// Count registers owner as the owner of bytes outside the Go heap that a finalizer or a cleanup of
// owner gives back. It is for bindings that have one. The bytes count until a cycle has found owner
// dead and the finalizers and cleanups that were due then have run. Release of the Handle says that
// the memory has been given back before that. Count panics where [Own] does.
func Count[T any](c *Collector, owner *T, bytes int64) Handle {
	checkOwner("Count", owner, bytes)
	return ownWith(cleanupsOf[countOnly](c.own()), owner, bytes, cleanup[countOnly]{release: func(countOnly) {}})
}

// countOnly is the argument of releases that do nothing.
type countOnly struct{}

func ownWith[T, A any](r *cleanups[A], owner *T, bytes int64, x cleanup[A]) Handle {
	o, c := r.o, r.gate.c
	gross := o.add(bytes)
	slot := r.track(unsafe.Pointer(owner), bytes, x)
	if c.samples.Due(gross) {
		c.samples.Note(r.place(slot), siteOf(), bytes, gross, c.settled.Load())
	}
	r.record(slot)
	runtime.KeepAlive(owner) // otherwise it could be found dead before that
	return Handle{r, slot}
}

// A Handle refers to memory that was given to [Own]. A program that does not need it may ignore it.
// The zero value owns nothing. Its methods are safe for concurrent use. A program that uses a
// handle should keep the owner alive until then ([runtime.KeepAlive]), because a cycle releases the
// memory of a dead owner.
type Handle struct {
	in   handles
	slot Slot
}

// handles are the cleanups of one type.
type handles interface {
	tracked() observe.Owners
	release(Slot) bool
	resize(Slot, int64) bool
}

// Release gives the memory back now, on the caller's goroutine. If that has happened before, it does
// nothing and returns false.
func (h Handle) Release() bool { return h.in != nil && h.in.release(h.slot) }

// Resize sets the bytes that the owner holds, as after a realloc. It may start a cycle, as Own does.
// If the memory has been given back, it does nothing and returns false. It panics on bytes below 0
// or above [MaxBytes].
func (h Handle) Resize(bytes int64) bool { return h.in != nil && h.in.resize(h.slot, bytes) }

// A cleanup is a release and its argument.
type cleanup[A any] struct {
	release func(A)
	arg     A
}

// cleanups holds the owners whose releases take an A.
type cleanups[A any] struct {
	WeakRegistry[cleanup[A]]
	o        *ownership
	pointers []uintptr // offsets of the pointers in an A
}

func (r *cleanups[A]) tracked() observe.Owners { return &r.objects }

func (r *cleanups[A]) place(slot Slot) observe.Place {
	return observe.Place{In: &r.objects, Slot: slot}
}

// record records the bytes of an owner.
func (r *cleanups[A]) record(slot Slot) {
	r.gate.c.recordNow(func(to *observe.Recorder) { to.Owned(r.place(slot), siteOf(), r.o.space) })
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
		r.o.live.Add(-bytes)
		r.gate.c.recordNow(func(to *observe.Recorder) { to.Released(r.place(slot), why) })
	}()
	x.release(x.arg)
}

func (r *cleanups[A]) resize(slot Slot, bytes int64) bool {
	checkBytes("Resize", bytes)
	before, ok := r.objects.SetBytes(slot, bytes)
	switch {
	case !ok:
		return false
	case bytes > before:
		r.o.add(bytes - before)
	default:
		r.o.live.Add(bytes - before)
	}
	r.record(slot)
	return true
}

// ownLarge is the size from which owners get a weak pointer at once, so that Go's own cycles find
// them as they would without us. Such a cycle may miss the 16 youngest smaller owners of each of the
// registry's shards, which hold at most 4 MiB.
const ownLarge = 4 << 10

// cleanupsOf returns the owners whose releases take an A. A list is enough, because a program has
// few types of arguments.
func cleanupsOf[A any](o *ownership) *cleanups[A] {
	for _, k := range *o.kinds.Load() {
		if r, ok := k.(*cleanups[A]); ok {
			return r
		}
	}
	return addCleanups[A](o)
}

func addCleanups[A any](o *ownership) *cleanups[A] {
	o.adding.Lock()
	defer o.adding.Unlock()
	list := *o.kinds.Load()
	for _, k := range list {
		if r, ok := k.(*cleanups[A]); ok { // another goroutine was faster
			return r
		}
	}
	r := &cleanups[A]{o: o, pointers: pointersOf(nil, reflect.TypeFor[A](), 0)}
	_, r.counted = any(*new(A)).(countOnly)
	r.init(o.gate, ownLarge, func(slot Slot, x cleanup[A], bytes int64) { r.giveBack(slot, x, bytes, trace.FreeCycle) })
	list = append(slices.Clip(list), r)
	o.kinds.Store(&list)
	return r
}

// An ownership is the Source of the memory that was given to Own and Account.
type ownership struct {
	space           pressure.Space
	limit           atomic.Int64 // 0 = none
	live, allocated atomic.Int64
	owed            atomic.Int64 // ns of assists that callers have not paid yet
	gate            *Gate

	kinds    atomic.Pointer[[]handles] // a *cleanups[A] for each A
	adding   sync.Mutex                // held to add to kinds; the collector's mu may be taken inside
	mu       sync.Mutex                // guards accounts; may be taken while the collector's mu is held
	accounts []*account                // that of Account, and those of the libraries; only ever appended to
}

func newOwnership(c *Collector, cfg Config) *ownership {
	o := &ownership{space: cfg.Space}
	own := &account{o: o}
	own.read = func() (bytes, objects int64) { return own.live.Load(), 0 }
	o.accounts = []*account{own}
	o.kinds.Store(new([]handles))
	o.limit.Store(cfg.Limit)
	o.gate = newGate(c, o)
	o.gate.memory.Soft = cfg.Caps.Assist >= 0
	o.gate.open()
	c.addWalker(o)
	c.owned.Store(o)
	return o
}

func (o *ownership) Sample() pressure.Sample {
	live := o.live.Load()
	return pressure.Sample{Space: o.space, Live: live, Reserved: live, Limit: o.limit.Load()}
}

func (o *ownership) Allocated() int64 { return o.allocated.Load() }

// add counts bytes, and returns the gross bytes so far. It asks the policy before counting, and
// holds the caller for its share of a cycle after it. Otherwise the bytes that triggered the cycle
// would look like later growth and trigger another one.
func (o *ownership) add(bytes int64) (gross int64) {
	o.gate.Allocating(o.live.Load(), bytes)
	if limit, g := o.limit.Load(), o.gate; limit > 0 && o.live.Load() > limit-bytes {
		if !g.memory.Soft {
			o.makeRoom(bytes, limit)
		} else if !g.c.running() && g.rest.Load().Over(g.c.Now(), o.live.Load()) {
			g.Refused(bytes)
		}
	}
	gross = o.take(bytes)
	if r := o.gate.c.current.Load(); r != nil && o.gate.memory.Soft {
		runtime.LockOSThread() // a C allocator has an arena for each thread, and keeps freed memory there
		defer runtime.UnlockOSThread()
		o.gate.c.giveWay(r)
		o.assist(r, bytes)
	}
	return gross
}

// makeRoom waits for the cycle under way. If that does not help it waits for a new one, unless a
// cycle has just been futile.
func (o *ownership) makeRoom(bytes, limit int64) {
	fits := func() bool { return o.live.Load() <= limit-bytes }
	c, m := o.gate.c, &o.gate.memory
	if c.Wait() && fits() {
		return
	}
	c.mu.Lock()
	o.gate.read(c.Now())
	climbs := m.Climbs()
	c.mu.Unlock()
	if climbs {
		c.Collect(policy.TriggerRefusal)
		c.mu.Lock()
		defer c.mu.Unlock()
		o.gate.read(c.Now())
		m.Climbed(fits())
	}
}

func (o *ownership) take(bytes int64) (gross int64) {
	o.live.Add(bytes)
	return o.allocated.Add(bytes)
}

// SetLimit sets the budget of the memory that is given to Own and Account, in bytes; 0 means none.
// It is a goal: see [Own]. It panics if bytes are below 0 or above [MaxBytes].
func (c *Collector) SetLimit(bytes int64) {
	checkBytes("SetLimit", bytes)
	c.own().limit.Store(bytes)
	c.mu.Lock()
	defer c.unlock()
	c.governor.Changed()
	c.publish()
}
