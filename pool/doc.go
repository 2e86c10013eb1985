// Package pool hands out memory outside the Go heap, counts it, and keeps it under a limit.
//
//	memory, err := pool.New(pool.Config{Limits: pressure.Limits{Hard: pressure.Limit{Bytes: 64 << 20}}})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer memory.Close()
//	samples, err := array.New[float32](memory, 1<<20) // 4 MiB, which a cycle frees
//
// # Model
//
// A [Pool] takes segments from an [Upstream] (host memory here, devices in pool/cuda), cuts each
// [Block] out of them, and keeps freed memory for the next request of the same stream. Live bytes
// are handed out; reserved bytes are taken from the upstream; the difference is cached.
//
// A Block is for code that frees by hand, or leaves it to the collector with [Own]. An array of
// pool/array goes back by itself: once the program can no longer reach it, the next cycle of the
// pool's [gc.Collector] finds it. The collector decides when that cycle runs.
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
// All locks of pool and gc, in the order in which they may be taken. Two locks on one line are
// never held together.
//
//	Pool.once                the making of a private collector, the change of the sink
//	gc.Collector.settling    a cycle, from before its mark to after its walk
//	gc.Collector.mu          the collector's state
//	gc.WeakRegistry          a shard of a registry
//	group.mu                 the pools of a device
//	cache.mu                 a cache: several, by number
//	depot.mu                 magazines for any cache
//	core.mu                  the free pieces
//	others                   short ones of ladder, inFlight, sites, upstreamCache, group.asking
//
// The pool holds none of its locks while it waits, or calls the upstream, a recorder, a
// [Reclaimable] or other code that is not its own. So all of these may use the pool, with one
// exception: [Pool.SetTrace] records the live blocks under Pool.once, and calls that allocate or
// free wait for it. The collector holds no lock while it gives back the memory of the dead. It holds
// mu while it calls its policy, its recorder and its sources, so these must not call the collector.
//
// # Holders of memory
//
// With [Config].Sites the pool notes the allocation sites of a sample of its blocks, as Go's heap
// profile does. An allocation site is the stack of the call that allocated; in this package "site"
// means nothing else. [Pool.Holders] lists the sites that hold most. An [OutOfMemoryError] names
// the largest holders, and a recording has the sites of its allocations.
//
// # When it does not fit
//
// First the pool gives cached memory back to the upstream, in whole segments, and asks the upstream
// again. If the upstream is a [Mapper], memory from behind free pieces moves to the place of the
// block. So fragments of one size do not block another size. If that is not enough, the allocation
// is refused and climbs the ladder (see [Step]): the cheapest step first, and another try after each
// step. If no step helps, the allocation fails with an [OutOfMemoryError].
//
// Refused allocations stand in line: first come, first served, and one at a time climbs. Memory that
// is freed meanwhile is for the line. Each waits at most a second for its turn.
package pool
