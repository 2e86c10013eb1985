package gc

import (
	"log/slog"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// A trimmer has C's allocator give free pages back to the system. glibc puts what is freed back into the arena that it came from, for the
// threads of that arena. Cycles free on threads of their own, so that a process keeps several times what it uses.
//
// What is kept has the price of memory. A trim costs its processor time, and a page fault for each page that comes back. The next one is due once
// price x kept x time is as much, which is the rule by which [HostPolicy] runs cycles. Kept memory is taken to grow as fast as
// before the last trim. There is one trimmer in a process, as there is one allocator.
type trimmer struct {
	libc               // nil = there is nothing to trim
	armed atomic.Bool  // a trim is due at some time. Whoever has set it owns what follows
	gave  atomic.Int64 // bytes so far, which no cycle has freed

	due   time.Duration // earliest time of the next trim
	last  time.Duration // when the last one ended
	after usage         // then
	cost  time.Duration // of all, page faults included
	said  bool          // that this is much
}

// A libc is what a trimmer needs of the process. A test has its own.
type libc interface {
	now() time.Duration
	later(d time.Duration, do func())
	waiting() bool   // finalizers or cleanups are due
	resident() int64 // bytes that no file backs; 0 if that is not known
	used() usage
	trim() bool // false if there is no such function
}

// A usage is what a process, or its calling thread, has used so far.
type usage struct {
	faults int64         // pages that were not there
	system time.Duration // of processor time, for the process in the kernel
	all    time.Duration // and in all
	thread time.Duration // of this thread
}

const (
	trimPrice  = 2e-8 // of memory, in processors per byte: that of HostPolicy
	trimFirst  = 50 * time.Millisecond
	trimLast   = 2 * time.Minute  // between two
	trimVainly = 0.001            // of the time, for trims that bring nothing, if those are more often than each second
	dearShare  = 0.05             // of the processor time that is worth a line
	dearLeast  = 10 * time.Second // of it, before the share means anything
	logTrimmed = "eagergc: trimmed C's allocator"
	logDear    = "eagergc: C's allocator keeps much of what cycles free, and to give that back takes processor time: MALLOC_ARENA_MAX=2 or another allocator may take less. EAGERGC_TRIM=off ends it"
)

// cycled is told by c that a cycle has freed memory of the host. It trims when that is due, on a goroutine of its own: where
// others call the allocator meanwhile, they may wait for it, some milliseconds for each 100 MiB.
func (t *trimmer) cycled(c *Collector) {
	if t.libc != nil && !t.armed.Swap(true) {
		if t.last == 0 {
			t.last, t.after = t.now(), t.used()
			t.due = t.last + trimFirst
		}
		at := max(t.due, t.now())
		t.later(at-t.now(), func() { t.look(c, at+lookSeldom) })
	}
}

// look trims, once finalizers and cleanups that are due have run, or at the latest.
func (t *trimmer) look(c *Collector, latest time.Duration) {
	if t.waiting() && t.now() < latest {
		t.later(lookOften, func() { t.look(c, latest) })
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, used := t.resident(), t.used()
	if !t.trim() {
		return // nor will there be one
	}
	bytes := max(0, before-t.resident())
	t.gave.Add(bytes)
	after := t.used()
	work := after.thread - used.thread
	next := t.learn(bytes, work, used, c.throttle.Cycles)
	t.last, t.after = t.now(), after
	t.due = t.last + next
	c.debug(logTrimmed, func() []slog.Attr {
		return []slog.Attr{slog.Int64("bytes", bytes), slog.Duration("work", work), slog.Duration("next", next)}
	})
	if share := float64(t.cost) / float64(after.all); !t.said && share > dearShare && after.all > dearLeast {
		t.said = true
		c.say(logEntry{slog.LevelInfo, logDear, []slog.Attr{slog.Float64("share", share)}, true})
	}
	t.armed.Store(false)
}

// learn returns the time to the next trim, from one that gave so many bytes for so much work. Used is before
// it. Trims take at most so large a share of the processors.
func (t *trimmer) learn(bytes int64, work time.Duration, used usage, share float64) time.Duration {
	each := 0.0 // ns for a byte that comes back
	if n := used.faults - t.after.faults; n > 0 {
		each = float64(used.system-t.after.system) / float64(n) / float64(os.Getpagesize())
	}
	lasted := t.now() - t.last
	cost := float64(work) + each*float64(bytes)
	t.cost += time.Duration(cost)
	next := nextTrim(float64(bytes)/float64(max(1, lasted)), float64(work), each)
	next = min(next, 2*float64(max(lasted, trimFirst)), max(float64(time.Second), float64(work)/trimVainly))
	next = max(next, cost/(share*float64(runtime.GOMAXPROCS(0))))
	return time.Duration(min(next, float64(trimLast)))
}

// nextTrim returns the time t in ns for which price x kept x t = work + each x kept, where kept = rate x t: rate is bytes per ns, work ns.
func nextTrim(rate, work, each float64) float64 {
	if rate <= 0 {
		return math.Inf(1)
	}
	return (each + math.Sqrt(each*each+4*trimPrice*work/rate)) / (2 * trimPrice)
}
