package auto

import (
	"math"
	"os"
	"sync/atomic"
	"time"
)

// A goLimit is Go's own memory limit, as long as it is ours. In a container with a limit it follows what memory outside
// the Go heap leaves, so that Go collects sooner rather than be killed. What the program has set, it keeps: we change the limit only
// where it still is what we have set last. From the start on that is one byte less than none, so that a program which sets none is seen, too.
type goLimit struct {
	set  func(int64) int64 // as debug.SetMemoryLimit
	ours atomic.Int64      // 0 = not ours: GOMEMLIMIT is set, or the program had set one when we came
	at   time.Time         // when it was last changed
}

const unlimited = math.MaxInt64 - 1

// Go waits for its sweep at each setting (golang/go#57523), so that only what matters is set at once.
const (
	limitEvery   = 10 * time.Second
	limitChange  = 1.0 / 8 // of the limit, that is worth a setting
	limitHurry   = 1.0 / 4 // down by so much does not wait
	limitTight   = 1.1     // times what Go needs: below that it would collect without end, to no avail
	limitRelaxed = 1.25    // times what it needs, before there is a limit again
)

func takeGoLimit(set func(int64) int64) *goLimit {
	l := &goLimit{set: set}
	if os.Getenv("GOMEMLIMIT") == "" && set(-1) == math.MaxInt64 {
		l.ours.Store(unlimited)
		set(unlimited)
	}
	return l
}

// isOurs reports whether nobody else has set the limit.
func (l *goLimit) isOurs() bool {
	ours := l.ours.Load()
	return ours != 0 && l.set(-1) == ours
}

// giveBack is for the end: Go is left with no limit, unless the program has set one.
func (l *goLimit) giveBack() {
	if l.isOurs() {
		l.set(math.MaxInt64)
	}
	l.ours.Store(0)
}

// steer gives Go what is left for it, of which it needs some bytes for what is reachable. Where that is hardly more than it needs
// it gets no limit: a limit below what is reachable frees nothing.
func (l *goLimit) steer(left, need int64, now time.Time) {
	ours, room := l.ours.Load(), limitTight
	if ours == unlimited {
		room = limitRelaxed
	}
	if float64(left) < room*float64(need) {
		left = unlimited
	}
	left = min(left, unlimited)
	change := float64(left-ours) / float64(ours)
	switch {
	case !l.isOurs() || math.Abs(change) < limitChange:
		return
	case left != unlimited && change > -limitHurry && now.Sub(l.at) < limitEvery:
		return
	}
	if was := l.set(left); was != ours { // the program has come between
		l.set(was)
		return
	}
	l.ours.Store(left)
	l.at = now
}

// reached reports whether Go has as much as its limit allows, so that it is time to look whether that is enough.
func (l *goLimit) reached(golang int64) bool {
	ours := l.ours.Load()
	return 0 < ours && ours < unlimited && golang > ours-ours/16
}
