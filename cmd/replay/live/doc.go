// Package live executes recorded workloads on real memory, under the real Go
// collector: what package sim says about a policy, it checks.
//
// [Run] allocates every object of a [trace.Trace] from a [pool.Pool], keeps it
// in a table, and drops it by clearing its place there, so that only a real
// cycle of Go's collector can find it. Host work between events and waits for
// the device take the time that was recorded; a [Ballast] of Go pointers makes
// a cycle cost what it would in an app. The result has the metrics of a
// simulated run under the same names.
//
// [Calibrate] measures what a cycle costs on this machine, as a [sim.Cost] that
// a simulation can be run with. [Sample] is a program on a pool, to be recorded.
package live
