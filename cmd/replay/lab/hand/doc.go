// Package hand runs a policy from its Go source, in the page, where there is no
// compiler. The source is a whole file of a package: a type with the methods Decide,
// Observe and String, as in package gc. go/types checks it, so that its errors are
// those of the compiler, with their places.
//
// What runs is a part of Go: numbers, truth values, texts, fields, functions and
// methods of the file; if, switch and for; no goroutine, pointer, slice, map or
// closure. A policy needs no more. Whatever else there is, is an error with its place,
// before anything runs. A call takes at most a million steps.
package hand
