// Package trim makes glibc give memory that cycles have freed back to the system. The import of
// package gc/auto includes it. A program that makes its collectors with gc.New asks for it by
//
//	import _ "github.com/eagergc/eagergc/gc/auto/trim"
//
// glibc puts freed memory back into the arena that it came from, for the threads of that arena.
// Cycles free on threads of their own, so a process can hold several times the memory that it uses.
// After cycles that have freed memory of the host, malloc_trim runs on a goroutine of its own, as
// often as the price of memory justifies. A thread that allocates meanwhile may wait for it, some
// milliseconds for each 100 MiB. If all processors are busy, a goroutine may wait for 10 ms, because
// Go lets the call keep its processor for so long. Trims, and page faults for pages that come back,
// take at most the share of the processors that [github.com/eagergc/eagergc/gc.Caps] allows for cycles.
// Where cycles bring little they take 1 % of the processor time that the program uses.
//
// The package needs no cgo. It does nothing in a program without C, in one that is linked
// statically, or with another C library. It also does nothing if another allocator replaces malloc
// (jemalloc, mimalloc, tcmalloc). EAGERGC_TRIM=off turns it off.
package trim

import (
	"log/slog"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/eagergc/eagergc/gc/internal/freed"
	"github.com/eagergc/eagergc/gc/internal/goruntime"
)

// A trimmer trims once the kept memory has cost as much as a trim. A trim costs its processor time,
// and page faults for pages that come back. Kept memory costs price x bytes x time, as in
// gc.HostPolicy. It is taken to grow as fast as before the last trim. A process has one trimmer,
// because it has one allocator.
type trimmer struct {
	libc
	mu    sync.Mutex
	at    time.Duration // when the next trim is due; 0 = not armed
	under bool          // it is under way, and its goroutine owns the fields below

	last  time.Duration // when the last one ended
	after usage         // then
	next  time.Duration // to the next one by the price and the share of the processors
	spend time.Duration // for which the program uses as much processor time as the last one cost
	trims int           // so far
	page  time.Duration // that a page fault takes
	cost  time.Duration // of all trims, page faults included
	said  bool          // that this is much
}

// A libc gives a trimmer access to the process. Tests replace it.
type libc interface {
	now() time.Duration
	later(d time.Duration, do func())
	resident() int64 // bytes that no file backs; 0 if that is not known
	used() usage
	page() time.Duration // measures a page fault; 0 if that fails
	trim() bool          // false if there is nothing to trim
}

// A usage is the processor time that a process and its calling thread have used so far.
type usage struct{ all, thread time.Duration }

const (
	trimPrice  = 2e-8 // of memory, in processors per byte: that of gc.HostPolicy
	trimFirst  = 50 * time.Millisecond
	trimLast   = 2 * time.Minute        // between two
	trimVainly = 0.001                  // of the time, for trims that bring nothing, if those are more often than each second
	lookOften  = 2 * time.Millisecond   // while finalizers or cleanups are due
	lookLast   = 100 * time.Millisecond // for those
	idleBusy   = 1. / 32                // processors that a program is taken to use at least
	pageOften  = 64                     // trims until page faults are measured again
	pageCost   = 2                      // page faults that a page that comes back costs in all: 1.4 to 2.8 in four programs (results/2026-11-27-cost)
	dearShare  = 0.05                   // of the processor time that is worth a line
	dearLeast  = 10 * time.Second       // of it, before the share means anything
	logTrimmed = "eagergc: trimmed C's allocator"
	logDear    = "eagergc: C's allocator keeps much of what cycles free, and to give that back takes processor time: MALLOC_ARENA_MAX=1 or another allocator may take less. EAGERGC_TRIM=off ends it"
)

// cycled arms the next trim after a cycle that has freed memory of the host. If the share has grown,
// a trim that is armed comes sooner.
func (t *trimmer) cycled(c freed.Cycle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.under {
		return
	}
	now := t.now()
	if t.last == 0 {
		t.last, t.after, t.next = now, t.used(), trimFirst
	}
	at := max(now, t.last+t.next)
	if c.Share < 1 {
		at = max(at, t.last+min(time.Duration(float64(t.spend)/c.Share), trimLast))
	}
	if t.at == 0 || at < t.at {
		t.at = at
		t.later(at-now, func() { t.begin(c, at) })
	}
}

// begin begins the trim that is due at a time, unless another time has taken its place.
func (t *trimmer) begin(c freed.Cycle, at time.Duration) {
	t.mu.Lock()
	begins := at == t.at && !t.under
	t.under = t.under || begins
	t.mu.Unlock()
	if begins {
		t.look(c, at+lookLast)
	}
}

// look trims once finalizers and cleanups that are due have run, or at the latest.
func (t *trimmer) look(c freed.Cycle, latest time.Duration) {
	if c.Waiting() && t.now() < latest {
		t.later(lookOften, func() { t.look(c, latest) })
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, used := t.resident(), t.used()
	if !t.trim() {
		return // there will be nothing later either: under stays set
	}
	bytes := max(0, before-t.resident())
	freed.Gave(bytes)
	after := t.used()
	work := after.thread - used.thread
	if t.trims%pageOften == 0 {
		t.page = t.libc.page()
	}
	t.trims++
	t.learn(bytes, work, used, &c)
	if share := float64(t.cost) / float64(after.all); !t.said && share > dearShare && after.all > dearLeast {
		t.said = true
		c.Say(slog.LevelInfo, true, logDear, slog.Float64("share", share))
	}
	c.Say(slog.LevelDebug, false, logTrimmed, slog.Int64("bytes", bytes), slog.Duration("work", work), slog.Duration("next", t.next))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.after = t.now(), after
	t.at, t.under = 0, false
}

// learn sets when the next trim is due, after one that gave bytes back for work. Used is from before
// it.
func (t *trimmer) learn(bytes int64, work time.Duration, used usage, c *freed.Cycle) {
	fault := float64(t.page) / float64(os.Getpagesize()) // of a byte that comes back, in ns
	each := pageCost * fault                             // all that the byte costs
	lasted := t.now() - t.last
	cost := float64(work) + each*float64(bytes)
	t.cost += time.Duration(cost)
	next := nextTrim(float64(bytes)/float64(max(1, lasted)), float64(work), each)
	next = min(next, 2*float64(max(lasted, trimFirst)), max(float64(time.Second), float64(work)/trimVainly))
	next = max(next, (float64(work)+fault*float64(bytes))/(c.Cap*float64(goruntime.Processors())))
	t.next = time.Duration(min(next, float64(trimLast)))
	busy := float64(used.all-t.after.all) / float64(max(1, lasted))
	t.spend = time.Duration(cost / max(busy, idleBusy))
}

// nextTrim returns the time t, in ns, for which price x kept x t = work + each x kept. Kept is rate
// x t, with rate in bytes per ns. Work is in ns.
func nextTrim(rate, work, each float64) float64 {
	if rate <= 0 {
		return math.Inf(1)
	}
	return (each + math.Sqrt(each*each+4*trimPrice*work/rate)) / (2 * trimPrice)
}
