// Package live executes recorded workloads on real memory, under Go's real collector. It checks
// the predictions of package sim about a policy.
//
// [Run] allocates every object of a [trace.Trace] from a [pool.Pool] and keeps it in a table. To
// drop an object it clears its entry, so that only a real cycle of Go's collector can find it.
// Work of the host and waits for the device take the recorded time. A ballast of Go pointers
// makes a cycle as expensive as in an app. The result has the metrics of a simulated run, under
// the same names.
//
// [Calibrate] measures the costs of cycles and allocations on this machine. It executes programs
// in the same way, and returns a [sim.Machine] for simulations.
package live
