// Package gc decides when a program that owns memory outside the Go heap
// should run Go's collector.
//
// A [Policy] is a pure step: it sees a [Point] and answers with a [Decision],
// and it is told of each finished [Cycle]. It has no clock, no runtime and no
// random source, so that the live collector and the simulator can drive the
// same object. Every policy has one text form, which [Parse] reads and String
// writes.
//
// # Locks
//
// A collector has two: settling, held from before a cycle's mark to after its
// walk, and inside it mu, held for no longer than a policy takes to decide. A
// registry's shards have one each, taken inside settling. What gives memory back runs
// under settling, and must not start or wait for a cycle. Policies, recorders, logs and
// sources are called under mu, and must not call the collector. The function
// given to [Collector.Sync] runs under neither. Package pool has the order of
// all locks of both.
//
// # Looking on
//
// Config.Log is told of cycles, refusals, new policies and contained panics.
// While the program is being traced ([runtime/trace]), each cycle is a task
// "eagergc cycle" with regions for its mark, its settling and the callers that
// it holds, and each wait of [Collector.Sync] is a region "eagergc wait": go
// tool trace shows them beside the goroutines. Either costs next to nothing
// while off. Package gc/debug serves a page, gc/prom has metrics.
package gc
