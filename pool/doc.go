// Package pool hands out memory outside the Go heap, counts it, and keeps it
// under a limit.
//
// # Model
//
// A [Pool] takes segments from an [Upstream] (host memory here, devices in
// pool/cuda), cuts each [Block] out of them, and keeps freed memory for the
// next request of the same stream. Live bytes are handed out; reserved bytes are
// taken from the upstream; the difference is cached.
//
// A Block is for code that frees by hand, or leaves it to the collector with [Own].
// An array of pool/array goes back by itself: once the program can no longer reach
// it, the next cycle of the pool's [gc.Collector] finds it. The collector decides when
// that cycle runs.
//
// # Invariants
//
//   - live <= reserved at every moment, also after failures, and reserved never grows
//     above the hard limit. A limit that falls below the live bytes binds once these are freed.
//   - A block is handed out to one owner at a time and given back once. A call
//     that breaks this panics.
//   - A panic of an upstream or a [Reclaimable] becomes an error. The pool stays
//     usable.
//
// # Locks
//
// All locks of pool and gc, in the order in which they may be taken. Two locks on
// one line are never held together.
//
//	the making of a private collector, the change of the sink    Pool.once
//	a cycle, from before its mark to after its walk    gc.Collector.settling
//	the collector's state    gc.Collector.mu
//	a shard of a registry    gc.WeakRegistry
//	the pools of a device    group.mu
//	a cache: several, by number    cache.mu
//	magazines for any cache    depot.mu
//	the free pieces    core.mu
//	short ones, with nothing taken inside    ladder, inFlight, sites, poison, Pool.caching, Scope, budget, a trace.Recorder's
//
// The pool holds none of its locks while it calls the upstream, a Record, a
// [Reclaimable] or other code that is not its own, or while somebody waits. So
// all of these may use the pool. The collector holds none while it gives back
// the memory of the dead. It holds mu while it calls its policy, its recorder and its sources,
// so these must not call the collector. A test calls the pool from every such place.
//
// # Who holds the memory
//
// With [Config].Sites the pool notes the allocation sites of a sample of its
// blocks, as Go's heap profile does. An allocation site is the stack of the call
// that allocated; in this package "site" means nothing else. [Pool.Holders] lists
// the sites that hold most. An [OutOfMemoryError] names the largest holders, a
// recording has the sites of its allocations, and trace/formats/poolpprof makes a profile for
// go tool pprof.
//
// # When it does not fit
//
// First the pool gives cached memory back to the upstream and asks the upstream
// again, by whole segments. If the upstream is a [Mapper], memory from behind free pieces
// moves to where the block is to be. So fragments of one size do not block another
// size. If that is not enough, the allocation is refused and climbs the ladder (see [Step]): the
// cheapest step first, and another try after each step. If no step helps, the
// allocation fails with an [OutOfMemoryError].
//
// Those who are refused stand in line: first come, first served, and one at a time
// climbs. Memory that is freed meanwhile is for the line, and not for who asks
// next. Nobody is in line for more than a second before its turn comes.
package pool
