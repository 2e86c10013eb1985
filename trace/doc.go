// Package trace holds the event stream of a program's off-heap memory: what
// it allocated, dropped, freed and waited for, and what its collector did.
//
// # The model
//
// A [Trace] is a list of [Event] values sorted by time, in nanoseconds from
// the first event. An object is born by an Alloc, becomes unreachable by a
// Drop, and its bytes return to the pool by a Free. Programs that count
// references drop and free at the same moment; programs under a garbage
// collector free later, and a recording of them knows the drop only when it
// was explicit.
//
// At equal times memory events stand in the order of their source, and Sync
// events follow them.
//
// # Recording
//
// A [Recorder] takes events from a running program and writes them in batches;
// trace/arrowfile has the file. An event with a Duration is recorded when it ends,
// and its Time is its start, so batches may overlap in time: a reader sorts.
//
// # Invariants
//
// [Trace.Validate] checks them: times never go backwards; sizes are not
// negative and below 2^62, and so is their sum; an identity is allocated once
// before it is dropped, dropped at most once and freed at most once, with the size
// and in the space of its allocation. A recording that lost events, or that was
// off for a while, may break the last of these: a Mark with [LostLabel] says so.
package trace
