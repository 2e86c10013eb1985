// Package trace holds the events of a program's memory outside the Go heap: what
// it allocated, dropped, freed and waited for, and what its collector did.
//
// # The model
//
// A [Trace] is a list of [Event] values sorted by time, in nanoseconds from
// the first event. An object begins with an Alloc, becomes unreachable with a
// Drop, and its bytes return to the pool with a Free. A program that counts
// references drops and frees at the same moment. A program with a garbage
// collector frees later, and a recording of it knows a drop only if the program
// said so itself.
//
// At equal times memory events keep the order of their source, and Sync events
// follow them.
//
// # Recording
//
// A [Recorder] takes events from a running program and writes them in batches, in
// the file format of trace/trace. An event with a Duration is recorded when it
// ends, but its Time is its start. So batches may overlap in time, and a reader
// sorts the events.
//
// # Invariants
//
// [Trace.Validate] checks them. Times never go backwards. Sizes are not negative
// and below 2^62, and so is their sum. An object is allocated once, then dropped
// at most once and freed at most once, with the size and in the space of its
// allocation. A recording that lost events, or that was off for a while, may break
// the last rule: a Mark with [LostLabel] says so.
package trace
