// Package pressure counts the bytes that programs hold outside the Go heap and relates them to a
// limit.
//
// A [Space] is one memory that is budgeted on its own: host, pinned, managed or one device. A
// [Sample] is one reading of its live and reserved bytes, and its pressure is live / limit.
// [Limits] holds the soft and hard limit of a space in the text form that CUDA.jl documents.
//
// A library that holds such memory makes a [Counter] and counts the bytes that it takes and gives
// back. [Own] does both for an object that owns memory. Libraries need nothing else of this module
// and never collect. The program chooses whether a collector listens; by default none does.
//
//	var images = pressure.NewCounter("libfoo")
//
//	img := &Image{pixels: C.foo_new(size)}
//	pressure.Own(images, img, size, func(p unsafe.Pointer) { C.foo_free(p) }, img.pixels)
//
// [Bytes] and [Count] put numbers into words, for all of this project.
//
// Live bytes are handed out and not yet given back: garbage still counts. Reserved bytes are
// taken from the pool's upstream, so reserved is at least live.
package pressure
