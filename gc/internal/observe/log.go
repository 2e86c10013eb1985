package observe

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A Line holds the arguments of Say.
type Line struct {
	Level slog.Level
	Aloud bool
	Text  string
	Attrs []slog.Attr
}

// A Log passes lines to a handler, which it calls under no lock but its own. All methods are safe
// for concurrent use.
type Log struct {
	To      *slog.Logger      // nil = slog.Default for lines that are aloud, and for debug lines
	Contain func(func(error)) // is deferred, and passes a panic of the handler on
	Failed  func(err error)   // receives it

	mu  sync.RWMutex // held for reading while the handler runs
	off atomic.Bool  // later lines are dropped
}

// logger returns the logger of a line, or nil if nobody wants it. It asks for slog.Default at each
// line, because a program may set that late.
func (l *Log) logger(level slog.Level, aloud bool) *slog.Logger {
	to := l.To
	if to == nil && (aloud || level == slog.LevelDebug) {
		to = slog.Default()
	}
	if to == nil || l.off.Load() || !to.Enabled(context.Background(), level) {
		return nil
	}
	return to
}

// Say logs a line.
func (l *Log) Say(level slog.Level, aloud bool, text string, attrs ...slog.Attr) {
	to := l.logger(level, aloud)
	if to == nil {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.off.Load() {
		return
	}
	defer l.Contain(func(err error) {
		l.off.Store(true)
		l.Failed(fmt.Errorf("gc: the log %w", err))
	})
	to.LogAttrs(context.Background(), level, text, attrs...)
}

// Debug logs a debug line. Its attributes are made only if it reaches the handler.
func (l *Log) Debug(text string, attrs func() []slog.Attr) {
	if l.logger(slog.LevelDebug, false) != nil {
		l.Say(slog.LevelDebug, false, text, attrs()...)
	}
}

// Close turns the log off, and waits for calls of the handler to return.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off.Store(true)
}

// An OverLimit watches whether cycles keep the limit of Own.
type OverLimit struct {
	Now  bool          // the last cycle left more than the limit
	told [3]bool       // the causes that were logged
	last time.Duration // when a cycle last left more than the limit
}

// keptFor is how long the limit has to be kept before a cause is logged again.
const keptFor = time.Minute

// Why a cycle leaves more than the limit, and what to do.
const (
	logOver      = "eagergc: over the limit, with nothing to free: more is reachable than the limit allows. Raise the limit, or hold less"
	logOverLate  = "eagergc: over the limit: more was added while the cycle ran than there was room for. Raise the limit to enough_bytes, or make the Go heap smaller, which makes cycles shorter"
	logOverStuck = "eagergc: over the limit: what cycles have found dead is not given back yet. Releases or finalizers take long, or do not return"
)

// Note takes a cycle. Dying bytes were found dead and are not given back yet. Added bytes came while
// it ran. Note returns the lines to log. It logs each cause once until the limit has been kept for
// a minute.
func (o *OverLimit) Note(cycle policy.Cycle, dying, added int64) []Line {
	kept := cycle.LiveAfter - dying - added
	cause, text := 0, logOver
	switch {
	case cycle.LiveAfter <= cycle.Limit:
		o.Now = false
		if cycle.Start > o.last+keptFor { // otherwise live memory moves up and down around the limit
			o.told = [3]bool{}
		}
		return nil
	case cycle.LiveAfter-dying <= cycle.Limit:
		cause, text = 1, logOverStuck
	case kept <= cycle.Limit:
		cause, text = 2, logOverLate
	}
	o.Now, o.last = true, cycle.Start
	if o.told[cause] {
		return nil
	}
	o.told[cause] = true
	return []Line{{slog.LevelWarn, true, text, []slog.Attr{
		slog.Int64("live_bytes", cycle.LiveAfter), slog.Int64("limit_bytes", cycle.Limit), slog.Int64("freed_bytes", cycle.Freed),
		slog.Int64("not_given_back_bytes", dying), slog.Int64("added_bytes", added), slog.Duration("cycle", cycle.Duration),
		slog.Int64("enough_bytes", cycle.LiveAfter-dying+added),
	}}}
}
