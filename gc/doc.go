// Package gc decides when a program that owns memory outside the Go heap
// should run Go's collector.
//
// A [Policy] is a pure step: it sees a [Point] and answers with a [Decision],
// and it is told of each finished [Cycle]. It has no clock, no runtime and no
// random source, so that the live collector and the simulator can drive the
// same object. Every policy has one text form, which [Parse] reads and String
// writes.
//
// # Looking on
//
// Config.Log is told of cycles, refusals, new policies and contained panics.
// While the program is being traced ([runtime/trace]), each cycle is a task
// "eagergc cycle" with regions for its mark, its settling and the callers that
// it holds, and each wait of [Collector.Sync] is a region "eagergc wait": go
// tool trace shows them beside the goroutines. Either costs next to nothing
// while off. Package gc/debug serves a page, pressure/prom has metrics.
package gc
