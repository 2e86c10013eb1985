package auto

import (
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// An allocator is C's, for a program that has one.
type allocator struct {
	stats func() (inUse, kept int64)
	trim  func() bool
}

var linked atomic.Pointer[allocator]

// SetTrim says how to read C's allocator and how to make it give free pages back to the
// system. Package gc/with/malloc calls it. Where a large part of the memory outside
// the Go heap is free and stays with the allocator, it is trimmed, at most each two minutes.
func SetTrim(stats func() (inUse, kept int64), trim func() bool) {
	linked.Store(&allocator{stats, trim})
}

// CockroachDB purges its allocator as seldom, and where a fifth of it is overhead.
const (
	trimEvery = 2 * time.Minute
	trimShare = 0.2
	trimLeast = 32 << 20
)

// due reports whether an allocator that has so much, and keeps so much of it free, is to give that back.
func (w *watcher) due(last, now time.Time, all, kept int64) bool {
	return now.Sub(last) >= trimEvery && kept >= trimLeast && float64(kept) >= trimShare*float64(all)
}

// trim is called with each review, of outside bytes that are resident and not Go's.
func (w *watcher) trim(outside int64, now time.Time) {
	if all, kept := w.host.goFree(); w.options.Trim && w.due(w.freed, now, all, kept) {
		w.freed = now
		debug.FreeOSMemory()
		w.options.log().Debug("eagergc: gave free memory of the Go heap back", slog.Int64("free_bytes", kept))
	}
	a := linked.Load()
	if a == nil {
		return
	}
	if _, kept := a.stats(); w.due(w.trimmed, now, outside, kept) {
		w.trimmed = now
		if a.trim() {
			w.options.log().Debug("eagergc: trimmed C's allocator", slog.Int64("before_bytes", outside), slog.Int64("after_bytes", w.outside()))
		}
	}
}
