// Package live executes recorded workloads on real memory, under the real Go
// collector. It checks what package sim says about a policy.
//
// [Run] allocates every object of a [trace.Trace] from a [pool.Pool] and keeps it
// in a table. It drops an object by clearing its place there, so that only a real
// cycle of Go's collector can find it. Work of the host and waits for the device
// take the time that was recorded. A [Ballast] of Go pointers makes a cycle cost
// as much as in an app. The result has the metrics of a simulated run, under
// the same names.
//
// [Calibrate] measures what cycles and allocations cost on this machine, in
// programs that it executes in the same way: a [sim.Machine], with which a
// simulation can be run. [Sample] is a program on a pool, to be recorded.
package live
