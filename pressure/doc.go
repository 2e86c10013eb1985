// Package pressure counts the bytes that programs hold outside the Go heap and
// relates them to a limit.
//
// A [Space] is one memory that is budgeted on its own: host, pinned, managed
// or one device. A [Tracker] counts the live and reserved bytes of a space; a
// [Sample] is one reading of it, and its pressure is live / limit. [Limits]
// holds the soft and hard limit of a space in the text form that CUDA.jl
// documents.
//
// Live bytes are handed out and not yet given back: garbage still counts.
// Reserved bytes are what a pool took from its upstream, so reserved is at
// least live.
package pressure
