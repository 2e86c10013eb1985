// Package freed connects package gc with the trimmer of C's allocator. Package gc reports cycles that
// have freed host memory. The trimmer reports the bytes that it gave back. All functions are safe for
// concurrent use.
package freed

import (
	"log/slog"
	"sync/atomic"
)

// A Cycle is a cycle that has freed host memory.
type Cycle struct {
	Share   float64     // of the program's processor time that trims may take; 1 = as much as Cap allows
	Cap     float64     // of the processors that the collector's cycles may take, 0 to 1
	Waiting func() bool // reports whether finalizers or cleanups are queued
	// Say writes to the collector's log. If there is none, a line that is aloud, and a debug line, go
	// to slog.Default.
	Say func(level slog.Level, aloud bool, text string, attrs ...slog.Attr)
}

var (
	trimmer atomic.Pointer[func(Cycle)]
	given   atomic.Int64
)

// SetTrimmer makes By call f. F must not block.
func SetTrimmer(f func(Cycle)) { trimmer.Store(&f) }

// By calls the trimmer, if there is one, after a cycle.
func By(c Cycle) {
	if f := trimmer.Load(); f != nil {
		(*f)(c)
	}
}

// Gave adds bytes that the trimmer has given back to the system.
func Gave(bytes int64) { given.Add(bytes) }

// Given returns the bytes that the trimmer has given back so far.
func Given() int64 { return given.Load() }
