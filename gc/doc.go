// Package gc decides when a program that owns memory outside the Go heap should run Go's collector.
//
//	collector, err := gc.New(gc.Config{Limit: 8 << 30})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer collector.Close()
//	img := &Image{pixels: C.decode(file)}                 // 8 MiB of C memory
//	gc.Own(collector, img, 8<<20, freePixels, img.pixels) // a cycle frees them once img is unreachable
//
// A [policy.Policy] says when. Package governor turns its answers into orders, as it does in the
// simulator, and a collector carries them out.
//
// # Embedding
//
// A program declares its memory in one of three ways. [Own] is for memory that an object holds
// ([Count] if a finalizer or a cleanup of the object frees it). [Collector.Account] is for bytes
// that the program counts itself. [Watch] is for memory that other code counts. EMBEDDING.md
// compares them. A program may rely on this:
//
//   - A program that does not deadlock without this package does not deadlock with it. Releases run
//     on their own goroutines, may take any lock and may use the collector. A caller that waits for
//     a cycle does not wait for a release that is stuck.
//   - Cycles and waits keep to [Caps], whatever the policy says.
//   - A program on one to three cores that is busy gets four processors ([runtime.GOMAXPROCS]) for a
//     cycle whose mark takes long. Otherwise Go marks in turns of 10 to 20 ms, in which requests wait.
//     After the cycle GOMAXPROCS has its old value. It stays as it is if the environment sets it, or
//     if it is less than the number of cores.
//   - A release runs when [runtime.AddCleanup] would have run it: after a finalizer of its owner.
//   - The limit of Own is a goal. If memory exceeds it, the log, the page, the metrics and [Stats]
//     report that, and the log gives the reason.
//   - A cycle of the runtime frees large owners as it would with [runtime.AddCleanup], before and
//     after [Collector.Close].
//   - Certain misuse panics at the call. Other misuse is reported once it shows: see
//     [Snapshot].Survivors. With EAGERGC_STRICT=1 no panic is contained.
//
// Package gc/debug serves a page, and gc/with/prom exports metrics.
//
// # Locks
//
// A collector has two locks. Settling is held from before a cycle's mark until after its walk. Mu
// is taken inside settling, and is held no longer than a policy takes to decide. Each shard of a
// registry has a lock, which is taken inside settling. The lock of the releases is the innermost.
// Releases run under none of these locks. Policies, recorders and sources are called under mu, and
// must not call the collector. The function given to [Collector.Sync] runs under no lock. Package
// pool lists the order of all locks of both packages.
package gc
