package gc

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// Account counts bytes of memory outside the Go heap that have no owner: so many
// more, or so many fewer if bytes are below 0. It is for a program or a library
// that counts by itself, and has the shape of .NET's GC.AddMemoryPressure and
// RemoveMemoryPressure. The bytes share a space and a limit with those of [Own].
// Account may start a cycle and hold the caller as Own does. It panics on more
// than [MaxBytes], and if more is taken back than was counted.
//
// Others free the memory itself, as a rule finalizers or cleanups, which then call
// Account with bytes below 0. A cycle waits for those for 100 ms at most, and counts
// what they take back as its yield.
func (c *Collector) Account(bytes int64) {
	a := &c.own().accounted
	if bytes < 0 {
		if bytes < -MaxBytes {
			checkBytes("Account", bytes)
		}
		if left := a.live.Add(bytes); left < 0 {
			a.live.Add(-bytes)
			panic(fmt.Sprintf("gc: Account takes back %d bytes, where only %d are counted", -bytes, left-bytes))
		}
		a.gave(-bytes)
		return
	}
	checkBytes("Account", bytes)
	a.more(bytes)
}

// accounted is memory that others count and free: what Account was told of, or what a library has counted.
type accounted struct {
	o      *ownership
	live   atomic.Int64
	given  atomic.Int64 // bytes taken back since the start
	before atomic.Int64 // given, when the last mark began
	freed  atomic.Int64 // bytes that were taken back after cycles, so far
	log    accountLog
}

func (a *accounted) more(bytes int64) {
	o, c := a.o, a.o.gate.c
	a.live.Add(bytes)
	o.add(bytes)
	if c.recording.Load() {
		a.log.more(c, bytes, siteOf(), o.space)
	}
	if !c.awake.Load() {
		c.stayAwake()
	}
}

// gave is told that bytes were taken from live.
func (a *accounted) gave(bytes int64) {
	o, c := a.o, a.o.gate.c
	a.given.Add(bytes)
	o.giveBack(bytes)
	if c.recording.Load() {
		a.log.less(c, bytes, trace.FreeExplicit, o.space)
	}
}

// An accountLog makes objects of what Account counts or a gauge reads, for a recording. What is taken
// back is taken from the oldest, which is recorded as free once all of it is.
type accountLog struct {
	mu   sync.Mutex
	all  []counted
	last uint64 // identity
	back int64  // bytes of the oldest that are taken back
}

type counted struct {
	id    uint64
	bytes int64
}

// accountID is set in the identity of what Account has counted and gauges have read: see
// cleanups.id. Those of a gauge begin at its number times gaugeIDs.
const (
	accountID = 0xff << 56
	gaugeIDs  = 1 << 40
)

func (l *accountLog) more(c *Collector, bytes int64, site string, space pressure.Space) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	id := accountID | l.last
	l.all = append(l.all, counted{id, bytes})
	c.recordAlloc(id, bytes, site, space)
}

func (l *accountLog) less(c *Collector, bytes int64, why uint32, space pressure.Space) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.back += bytes; len(l.all) > 0 && l.back >= l.all[0].bytes; l.all = l.all[1:] {
		l.back -= l.all[0].bytes
		c.recordFree(l.all[0].id, l.all[0].bytes, why, space)
	}
	if len(l.all) == 0 {
		l.back = 0 // it was counted before the recording began
	}
}

// An accountWalk is the memory that others count and free as a cycle sees it: finalizers and
// cleanups give it back.
type accountWalk ownership

// accounts are Account's, and one for each library that counts.
func (w *accountWalk) accounts() []*accounted {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []*accounted{&w.accounted}
	for _, l := range w.libraries {
		all = append(all, &l.accounted)
	}
	return all
}

// promoteAll is called before a mark: cleanups may run before it has ended.
func (w *accountWalk) promoteAll() {
	for _, a := range w.accounts() {
		a.before.Store(a.given.Load())
	}
	(*ownership)(w).reconcile()
}

func (w *accountWalk) Len() int { return 0 }

// walk waits for what the cycle has found dead to be taken back. What more is freed
// meanwhile counts too: there is no telling.
func (w *accountWalk) walk(r *collection) {
	all := w.accounts()
	var live int64
	for _, a := range all {
		live += a.live.Load()
		if r.trigger == policy.TriggerNatural { // nobody knew that it would begin
			a.before.Store(a.given.Load())
		}
	}
	if live > 0 {
		marks := w.gate.c.engine.marked()
		r.await(settleBound, func() bool { return w.gate.c.cleaned(marks) })
	}
	var freed int64
	for _, a := range all {
		yield := a.given.Load() - a.before.Load()
		a.freed.Add(yield)
		freed += yield
	}
	r.credit(w.gate, freed)
}

// cleaned reports whether the finalizers and cleanups have run that the first so many marks
// have made due.
func (c *Collector) cleaned(marks int64) bool {
	return c.engine.swept() >= marks && !readPending().waiting()
}

// settleBound is the longest that a cycle waits for finalizers and cleanups.
const settleBound = 100 * time.Millisecond

// await waits for what others free, until done returns true, but not longer than bound.
func (r *collection) await(bound time.Duration, done func() bool) {
	begin := time.Now()
	for nap := 100 * time.Microsecond; time.Since(begin) < bound; nap = min(2*nap, time.Millisecond) {
		if time.Sleep(nap); done() {
			break
		}
	}
	r.waited += time.Since(begin)
}
