package auto

import (
	"log/slog"
	"runtime/debug"
	"time"
)

// CockroachDB purges its allocator as seldom, and where a fifth of it is overhead.
const (
	trimEvery = 2 * time.Minute
	trimShare = 0.2
	trimLeast = 32 << 20
)

// trim is called with each review. C's allocator is trimmed by the collector.
func (w *watcher) trim(now time.Time) {
	if !w.options.Trim {
		return
	}
	if all, kept := w.host.goFree(); dueForTrim(now.Sub(w.freed), all, kept) {
		w.freed = now
		debug.FreeOSMemory()
		w.options.log().Debug("eagergc: gave free memory of the Go heap back", slog.Int64("free_bytes", kept))
	}
}

// dueForTrim reports whether a heap that has so much, and keeps so much of it free, is to give that back, so long after the last time.
func dueForTrim(after time.Duration, all, kept int64) bool {
	return after >= trimEvery && kept >= trimLeast && float64(kept) >= trimShare*float64(all)
}
