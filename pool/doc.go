// Package pool hands out memory outside the Go heap, counts it, and keeps it
// under a limit.
//
// # Model
//
// A [Pool] takes segments from an [Upstream] (host memory here, devices in
// pool/cuda), cuts each [Block] out of them, and keeps what is given back for the
// next request of the same stream. Live bytes are handed out; reserved bytes are
// taken from the upstream; the difference is cached.
//
// Blocks are for code that frees by hand. An [Array] goes back by itself: when
// nothing in the program can reach it any more, the pool's [gc.Collector] finds
// it in its next cycle, and decides when that is to be. Free gives it back
// earlier, at any time and any number of times.
//
// # Invariants
//
//   - live <= reserved <= hard limit at every moment, failures included.
//   - A block is handed out to one owner at a time and given back once; what
//     breaks that panics.
//   - A panic of an upstream or a [Reclaimable] becomes an error, and the pool
//     stays usable.
//
// # Locks
//
// All locks of pool and gc, in the order in which they may be taken; those on
// one line are never held together.
//
//	the making of a pool's own collector    Pool.once
//	a cycle, from before its mark to after its walk    gc.Collector.settling
//	the collector's state    gc.Collector.mu
//	a shard of a registry    gc.WeakRegistry
//	a front: several, by number    front.mu
//	racks for any front    depot.mu
//	the free pieces    core.mu
//	short ones, with nothing taken inside    ladder, limbo, sites, poison, Scope, pressure.Budget, a trace.Recorder's
//
// None of the pool's own is held during a call of the upstream, the collector, a
// sink, a [Reclaimable] or anything else that is not the pool's, nor while
// somebody waits: all those may use the pool. The collector holds settling while it
// gives back what is dead, so what gives back must not start or await a
// cycle; and it holds mu while it asks its policy, its recorder, its log and its
// sources, which must not call it. A test calls back from everywhere.
//
// # Who holds the memory
//
// With [Config].Sites the pool notes where a sample of its blocks is allocated,
// as Go's heap profile does: see [Pool.Holders]. An [OutOfMemoryError] names the
// largest holders, a recording has the sites of its allocations, and pool/pprof
// makes a profile for go tool pprof.
//
// # When it does not fit
//
// A refused allocation climbs a ladder, cheapest step first (see [Step]), and
// tries again after each. Only then it fails, with an [OutOfMemoryError]. Cached
// memory gives way before that: whole segments, and of an upstream that is a
// [Divider] also the free parts of segments in use, so that fragments of one
// size do not stand in the way of another.
package pool
