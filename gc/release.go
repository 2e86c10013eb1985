package gc

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// releases gives back what cycles have found dead. Giving back is code of the
// program's: it may take long, wait for a lock that somebody holds who waits for
// a cycle, panic, or end its goroutine. So it runs on worker goroutines, apart from
// cycles. There is one as long as that is enough. A cycle waits while its releases
// make progress. A worker whose release does not return is left behind, and another
// takes over the objects that are not begun.
//
// The runtime clears weak pointers to an object when it queues the object's finalizer. So
// dead objects wait until the finalizers that are queued by then have run.
type releases struct {
	patience int // polls without progress after which the workers at work are left behind
	bound    int // polls after which a cycle waits no longer
	strict   bool
	c        *Collector

	mu       sync.Mutex
	early    []*batch         // that wait for finalizers
	ready    []*batch         // that have objects which no worker has taken up
	waiting  int              // objects of ready that no worker has taken up
	busy     map[*worker]bool // at work, and not left behind
	stuck    int              // workers that are left behind
	finished uint64           // releases that have ended, and batches that have waited for finalizers
	idle     chan struct{}    // closed once nothing is early and nobody busy; nil = nobody waits for that
	polling  bool             // a goroutine polls for stuck workers
	blocked  bool             // the program was told that releases do not return
}

// A batch is what one part of a registry had of dead objects.
type batch struct {
	cycle *collection
	gate  *Gate
	dead  interface {
		bytes(i int) int64
		give(i int)
	}
	counted bool  // its memory is back once finalizers and cleanups have run
	fence   fence // for them
	next, n int   // the first object that no worker has taken up, and their number
	freed   int64 // bytes given back in time to be the cycle's yield
}

// A worker is a goroutine that gives back.
type worker struct {
	batch *batch
	i     int  // of the object at work
	left  bool // behind
}

// A cycle polls its releases. Polls count, and not time: when the
// machine stands still for a while, no release is stuck.
const (
	releasePoll     = 10 * time.Millisecond // between two polls
	releasePatience = 10
	releaseBound    = 100
	manyStuck       = 16          // workers left behind; from then on one is left only after releaseBound
	finalizersBound = time.Second // after which the program is told that a finalizer blocks
)

// errGoexit is the failure of a release that ends its goroutine.
var errGoexit = errors.New("it called runtime.Goexit, as testing.T.FailNow does")

func newReleases(c *Collector) *releases {
	return &releases{patience: releasePatience, bound: releaseBound, strict: c.strict, c: c, busy: make(map[*worker]bool)}
}

// found has a batch of dead objects given back, as the yield of r.
func (r *collection) found(b *batch) {
	all := r.releases
	b.cycle = r
	bytes := int64(0)
	for i := range b.n {
		bytes += b.dead.bytes(i)
	}
	now := readPending()
	b.fence = fence{finalizers: now.finalizers, marks: all.c.engine.marked()}
	all.mu.Lock()
	defer all.mu.Unlock()
	r.batches = append(r.batches, b)
	b.gate.dying += bytes
	if all.c.passed(b, now) {
		all.begin(b)
		return
	}
	if all.early = append(all.early, b); len(all.early) == 1 {
		go all.awaitFinalizers()
	}
}

// begin has b given back. The caller holds mu.
func (r *releases) begin(b *batch) {
	r.ready = append(r.ready, b)
	r.waiting += b.n
	if len(r.busy) == 0 {
		r.hire()
	}
}

// A fence is passed once the finalizers have run that were queued when it was made.
type fence struct {
	finalizers uint64 // that have to run
	taken      bool   // the runtime has begun to run the last of those
	marks      int64  // of the engine, when it was made
}

// passed reports whether b may be given back. The runtime takes up all finalizers that are queued at once, and runs the
// latest first. So it is known that some have run when as many have, and then as many as were queued at that time.
func (c *Collector) passed(b *batch, now pending) bool {
	f := &b.fence
	if !f.taken && now.finalized >= f.finalizers {
		f.taken, f.finalizers = true, now.finalizers
	}
	if !f.taken || now.finalized < f.finalizers {
		return false
	}
	return !b.counted || c.engine.swept() >= f.marks && !now.waiting()
}

// awaitFinalizers begins the batches that are early, when their time has come. It returns when there is none.
func (r *releases) awaitFinalizers() {
	quiet := silence{since: time.Now()}
	for nap := 50 * time.Microsecond; ; nap = min(2*nap, time.Millisecond) {
		time.Sleep(nap)
		now := readPending()
		r.mu.Lock()
		var early []*batch
		for _, b := range r.early {
			if r.c.passed(b, now) {
				r.begin(b)
				r.finished++
			} else {
				early = append(early, b)
			}
		}
		passed := len(early) < len(r.early)
		r.early = early
		r.noteIdle()
		r.mu.Unlock()
		if len(early) == 0 {
			return
		}
		if quiet.isLong(time.Now(), passed) {
			r.c.failed(errors.New("gc: finalizers or cleanups that are due do not finish: one of them blocks, and what cycles find dead waits for it"))
		}
	}
}

// A silence is how long no batch has passed, and whether that was told.
type silence struct {
	since time.Time
	told  bool
}

// isLong says once, until a batch passes again, that none has for finalizersBound.
func (s *silence) isLong(now time.Time, passed bool) bool {
	if passed {
		*s = silence{since: now}
	}
	if s.told || now.Sub(s.since) <= finalizersBound {
		return false
	}
	s.told = true
	return true
}

// credit counts bytes of g that others have given back as the yield of r.
func (r *collection) credit(g *Gate, bytes int64) {
	r.releases.mu.Lock()
	defer r.releases.mu.Unlock()
	g.yield.Add(bytes)
	r.batches = append(r.batches, &batch{gate: g, freed: bytes})
}

// hire starts a worker, if there is something for it to do. The caller holds mu.
func (r *releases) hire() {
	if r.waiting > 0 {
		w := new(worker)
		r.take(w)
		r.busy[w] = true
		go r.work(w)
		if !r.polling {
			r.polling = true
			go r.poll()
		}
	}
}

// take makes w take up the next object, of which there is one. The caller holds mu.
func (r *releases) take(w *worker) {
	w.batch, w.i = r.ready[0], r.ready[0].next
	if w.batch.next++; w.batch.next == w.batch.n {
		r.ready[0] = nil // or its objects' arguments would stay reachable
		r.ready = r.ready[1:]
	}
	r.waiting--
}

// work is the goroutine of a worker.
func (r *releases) work(w *worker) {
	ended := false
	defer func() {
		if !ended { // the goroutine is on its way out
			r.done(w, errGoexit)
		}
	}()
	for more := true; more; {
		more = r.done(w, r.giveBack(w))
	}
	ended = true
}

// giveBack returns why the release of w's object failed, or nil.
func (r *releases) giveBack(w *worker) (failure error) {
	if !r.strict {
		defer func() {
			if e := recover(); e != nil {
				failure = fmt.Errorf("it panicked: %v\n%s", e, debug.Stack())
			}
		}()
	}
	w.batch.dead.give(w.i)
	return nil
}

// done counts that w's object is given back, and gives w the next one. It returns
// false if there is none for it.
func (r *releases) done(w *worker, failure error) (more bool) {
	if failure != nil { // counted first: whoever sees the cycle end sees that it failed
		r.c.mu.Lock()
		r.c.fail(fmt.Errorf("gc: the release of a dead object's memory failed: %w", failure))
		r.c.mu.Unlock()
		defer r.c.flush() // the log may use the collector
	}
	b, bytes := w.batch, w.batch.dead.bytes(w.i)
	r.mu.Lock()
	b.gate.dying -= bytes
	over := b.cycle.over
	if !over {
		b.gate.yield.Add(bytes)
		b.freed += bytes
		b.cycle.objects++
	}
	r.finished++
	more = r.waiting > 0 && failure != errGoexit
	if w.left {
		w.left = false
		r.stuck--
		r.busy[w] = true
	}
	if more {
		r.take(w)
	} else {
		r.leaves(w)
	}
	r.mu.Unlock()
	if over {
		r.c.releasedLate(bytes)
	}
	return more
}

// leaves counts that a worker goes. The caller holds mu.
func (r *releases) leaves(w *worker) {
	delete(r.busy, w)
	if len(r.busy) == 0 {
		r.hire() // if it goes with work left
		r.noteIdle()
	}
}

// noteIdle wakes those who wait until nothing is to be done. The caller holds mu.
func (r *releases) noteIdle() {
	if len(r.busy) == 0 && len(r.early) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// poll is a goroutine that runs while workers are at work. It leaves behind those that are stuck.
func (r *releases) poll() {
	finished, still := uint64(0), 0 // releases that had ended at the last poll; polls since one has
	for {
		time.Sleep(releasePoll)
		r.mu.Lock()
		if len(r.busy) == 0 {
			r.polling = false
			r.mu.Unlock()
			return
		}
		if still++; r.finished != finished {
			finished, still = r.finished, 0
		}
		var blocked error
		if r.gaveUp(still) {
			blocked = r.leave()
			still = 0
		}
		r.mu.Unlock()
		if blocked != nil {
			r.c.failed(blocked)
		}
	}
}

// gaveUp reports whether the workers at work are left behind after so many polls without progress. The caller holds mu.
func (r *releases) gaveUp(still int) bool {
	return still >= r.patience && (r.stuck < manyStuck || still >= r.bound)
}

// leave leaves the workers at work behind. It returns an error when they have become many. The caller holds mu.
func (r *releases) leave() (blocked error) {
	for w := range r.busy {
		w.left = true
		r.stuck++
	}
	clear(r.busy)
	r.hire()
	r.noteIdle()
	if was := r.blocked; r.stuck >= manyStuck && !was {
		blocked = fmt.Errorf("gc: %d releases do not return, and each keeps a goroutine: what they would give back stays live, and others are released late", r.stuck)
	}
	r.blocked = r.stuck >= manyStuck
	return blocked
}

// wait returns once all is given back but what workers are stuck in, or after the
// bound, or where nothing is left but what waits for finalizers that are stuck.
func (r *releases) wait() {
	var timer *time.Timer
	finished, still := uint64(0), -1
	for range r.bound {
		r.mu.Lock()
		if still++; r.finished != finished {
			finished, still = r.finished, 0
		}
		if len(r.busy) == 0 && (len(r.early) == 0 || still >= r.patience) {
			r.mu.Unlock()
			return
		}
		if r.idle == nil {
			r.idle = make(chan struct{})
		}
		idle := r.idle
		r.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(releasePoll)
			defer timer.Stop()
		} else {
			timer.Reset(releasePoll)
		}
		select {
		case <-idle:
			return
		case <-timer.C:
		}
	}
}

// close ends the time in which releases count as the yield of a cycle, and
// returns how many objects did, and how many bytes by gate.
func (r *releases) close(cycle *collection) (objects int, yields map[*Gate]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cycle.over = true
	yields = make(map[*Gate]int64)
	for _, b := range cycle.batches {
		yields[b.gate] += b.freed
	}
	cycle.batches = nil
	return cycle.objects, yields
}

// dying returns how many bytes of g were found dead and are not given back yet.
func (r *releases) dying(g *Gate) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return g.dying
}

// pending returns how many dead objects are not given back yet.
func (r *releases) pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.waiting + len(r.busy) + r.stuck
	for _, b := range r.early {
		n += b.n
	}
	return n
}
