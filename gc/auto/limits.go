package auto

import (
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
)

// A goLimit is Go's own memory limit while this package controls it. In a container with a limit,
// it follows the room that memory outside the Go heap leaves. Go then collects sooner, so that the
// process is not killed. A limit that the program sets stays: this package changes the limit only
// if it is still the one that it set last. At first it sets one byte less than no limit. So it also
// notices a program that asks for no limit.
type goLimit struct {
	set  func(int64) int64 // as debug.SetMemoryLimit
	ours atomic.Int64      // set last by this package; 0 = the program or GOMEMLIMIT has set one
	at   time.Time         // time of the last change
}

const unlimited = math.MaxInt64 - 1

// Go waits for its sweep each time that the limit is set (golang/go#57523). So only large changes
// are set at once.
const (
	limitEvery   = 10 * time.Second
	limitChange  = 1.0 / 8 // of the limit: smaller changes are not worth a setting
	limitHurry   = 1.0 / 4 // of the limit: a larger decrease does not wait
	limitTight   = 1.1     // times the memory that Go needs: with less it would collect without end
	limitRelaxed = 1.25    // times the memory that Go needs, before a limit is set again
)

func takeGoLimit(set func(int64) int64) *goLimit {
	l := &goLimit{set: set}
	if os.Getenv("GOMEMLIMIT") == "" && set(-1) == math.MaxInt64 {
		l.ours.Store(unlimited)
		set(unlimited)
	}
	return l
}

// isOurs reports whether the limit is still the one that this package has set.
func (l *goLimit) isOurs() bool {
	ours := l.ours.Load()
	return ours != 0 && l.set(-1) == ours
}

// giveBack ends the control of the limit. It removes the limit, unless the program has set one.
func (l *goLimit) giveBack() {
	if l.isOurs() {
		l.set(math.MaxInt64)
	}
	l.ours.Store(0)
}

// steer gives Go the bytes that are left for it. Need is the memory that Go must keep. If left is
// hardly more than need, Go gets no limit, because a limit below the reachable memory frees
// nothing.
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
	if was := l.set(left); was != ours { // the program has set a limit meanwhile
		l.set(was)
		return
	}
	l.ours.Store(left)
	l.at = now
}

// steers reports whether Go has a limit that this package has set.
func (l *goLimit) steers() bool {
	ours := l.ours.Load()
	return 0 < ours && ours < unlimited
}

// reached reports whether Go has used nearly all of its limit. It is then time to check whether the
// limit is enough.
func (l *goLimit) reached(golang int64) bool {
	ours := l.ours.Load()
	return l.steers() && golang > ours-ours/16
}

// Processes in one container see each other by the memory that it holds. They exchange no messages.
// Memory that other processes hold is not available to this one, so it is not part of its limit. As
// the container fills up, the price of memory rises for all alike. At one price every process keeps
// the headroom sqrt(rate of growth x cost of a cycle / price). This is the square-root rule across
// processes (MemBalancer, OOPSLA 2022).

// others returns the bytes of a container that are neither free nor held by this process. Limit is
// the size of the container, and own is the memory of this process.
func (w *watcher) others(limit, own int64) int64 {
	free, err := w.host.free()
	if err != nil || own == 0 {
		return 0
	}
	return max(0, limit-free-own)
}

// neighbourLeast is the smallest share of the container that counts as a neighbour. A shell or an
// agent beside the process holds less.
const neighbourLeast = 0.05

// crowd returns how full a shared container is. It returns 0 if the container is not shared.
func crowd(limit, others, own int64) float64 {
	if limit <= 0 || float64(others) < neighbourLeast*float64(limit) {
		return 0
	}
	return float64(others+own) / float64(limit)
}

// While tasks wait for memory, a byte costs four times as much, and at the next step four times
// that. A step depends on the share of the last 10 s in which some task has waited, or on how full
// a shared container is. Each step down needs a share well below that of the step up.
var urgencies = []struct {
	stalls, full float64
	policy       string
}{
	{0, 0, gc.HostPolicy},
	{0.02, 0.75, "host:price=8e-8,overhead=2%"},
	{0.2, 0.9, "host:price=3.2e-7,overhead=4%"},
}

// price chooses the policy. Stalls is the share of time in which some task waited, and full is how
// full a shared container is.
func (w *watcher) price(stalls, full float64) {
	now := w.urgency
	for now+1 < len(urgencies) && (stalls >= urgencies[now+1].stalls || full >= urgencies[now+1].full) {
		now++
	}
	for now > 0 && stalls < urgencies[now].stalls/4 && full < urgencies[now].full-0.1 {
		now--
	}
	if now != w.urgency && w.collector.Policy() == policy.MustParse(urgencies[w.urgency].policy).New().String() {
		w.urgency = now
		w.collector.SetPolicy(policy.MustParse(urgencies[now].policy).New())
		w.options.log().Debug("eagergc: price of memory", slog.Float64("stalls", stalls), slog.String("policy", w.collector.Policy()))
	}
}
