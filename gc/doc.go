// Package gc decides when a program that owns memory outside the Go heap
// should run Go's collector.
//
// A [policy.Policy] is a pure step: it sees a [policy.Point] and answers with a [policy.Decision],
// and it is told of each finished [policy.Cycle]. It has no clock, no runtime and no
// random source, so that the live collector and the simulator can drive the
// same object. Every policy has one text form, which [policy.Parse] reads and String
// writes.
//
// # Embedding
//
// A program declares its memory in one of three ways: [Own], if an object holds the
// memory ([Count], if a finalizer or a cleanup of the object frees it); [Collector.Account],
// if it counts bytes itself; [Watch], if somebody else
// counts them. EMBEDDING.md says which is for whom. What it may rely on:
//
//   - A program that does not deadlock without this package does not deadlock with
//     it. Releases run on goroutines of their own, may take any lock and may use the
//     collector. Whoever waits for a cycle does not wait for a release that is stuck.
//   - Whatever the policy says, cycles and waits keep to [Caps].
//   - A release runs when [runtime.AddCleanup] would have run it: after a finalizer of its owner.
//   - The limit of Own is a goal. It may be passed, and log, page,
//     metrics and [Stats] say so; the log says why.
//   - A cycle of the runtime's own frees large owners as it would with
//     [runtime.AddCleanup], before and after [Collector.Close].
//   - Misuse that is certain panics at the call. What cannot be seen there is named
//     once it shows: [Snapshot].Survivors. With EAGERGC_STRICT=1 nothing is contained.
//
// # Locks
//
// A collector has two: settling, held from before a cycle's mark to after its
// walk, and inside it mu, held for no longer than a policy takes to decide. A
// registry's shards have one each, taken inside settling. That of the releases is the innermost; releases run under none
// of them. Policies, recorders and sources are called under mu, and must not call
// the collector. The function given to [Collector.Sync] runs under no lock. Package
// pool has the order of all locks of both.
//
// # Onlookers
//
// Config.Log is told of cycles, refusals, new policies, failures that were
// contained, and what the program should mend.
// While the program is being traced ([runtime/trace]), each cycle is a task
// "eagergc cycle" with regions for its mark, its settling and the callers that
// it holds, and each wait of [Collector.Sync] is a region "eagergc wait": go
// tool trace shows them beside the goroutines. Either costs next to nothing
// while off. Package gc/debug serves a page, gc/with/prom has metrics.
package gc
