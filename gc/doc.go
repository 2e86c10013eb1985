// Package gc decides when a program that owns memory outside the Go heap
// should run Go's collector.
//
// A [Policy] is a pure step: it sees a [Point] and answers with a [Decision],
// and it is told of each finished [Cycle]. It has no clock, no runtime and no
// random source, so that the live collector and the simulator can drive the
// same object. Every policy has one text form, which [Parse] reads and String
// writes.
package gc
