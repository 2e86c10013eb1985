package registry

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/internal/goruntime"
)

// Releases gives the memory of dead objects back. The code of the program may take long, panic, end
// its goroutine, or wait for a lock whose holder waits for a cycle. So it runs on worker goroutines,
// usually one. A worker whose release does not return is left behind, and another one takes over.
//
// The runtime clears weak pointers to an object when it queues the object's finalizer. So the memory
// of a dead object waits until the finalizers that were queued when it was found have run.
type Releases struct {
	host Host

	mu      sync.Mutex
	changed sync.Cond // signalled by each step of the minder, and when no worker is busy
	early   []*batch  // wait for finalizers
	ready   []*batch  // have objects that no worker has taken
	busy    int       // workers at work, without those left behind
	stuck   int       // workers left behind
	shift   int       // how often workers were left behind
	blocked bool      // a failure for releases that do not return was reported
	minding bool      // a minder runs
	polls   int       // so far
	moved   int       // value of polls when memory was last given back or a worker hired
	passed  int       // value of polls when a batch last passed its fence; MaxInt once errFinalizers was reported
}

// A Host is the collector that releases belong to.
type Host struct {
	Engine goruntime.Engine
	Strict bool              // panics of releases are not contained
	Fail   func(error)       // counts and logs a failure
	Late   func(bytes int64) // counts bytes that came back after their cycle had settled
}

// A Memory is the releases' account of one memory.
type Memory struct {
	// Returning is the bytes that a cycle has given back. They count as live until the policy has
	// observed the cycle. Otherwise the policy would believe that the program freed them, and that
	// it allocates much faster.
	Returning atomic.Int64
	dying     int64 // bytes that were found dead and are not given back yet
}

// A Cycle is the releases' account of one cycle. The zero value is ready to use.
type Cycle struct {
	Waited  time.Duration     // for finalizers and cleanups, which is not a cost of the cycle
	yields  map[*Memory]int64 // bytes given back so far
	objects int               // given back so far
	over    bool              // the yield is complete; later releases do not count
}

// A Remains is the memory of several dead objects.
type Remains interface {
	Len() int
	Bytes(i int) int64
	Give(i int)
}

// A batch is a Remains that is being given back.
type batch struct {
	cycle   *Cycle
	memory  *Memory
	dead    Remains
	next, n int // the first object that no worker has taken, and the number of objects

	// The fence: the batch waits for the finalizers that were queued when it was found.
	finalizers uint64 // number of finalizers that have to run
	taken      bool   // the runtime has begun to run the last of them
	counted    bool   // the batch also waits for cleanups and for the sweep, which give its memory back
	marks      int64  // of the engine, when it was found
}

// A worker is a goroutine that gives back.
type worker struct {
	batch *batch
	i     int // the object at work
	shift int // differs from that of the releases if the worker is left behind
}

// The minder polls after each releasePoll of naps. Bounds are numbers of polls, not times, so that no
// release seems stuck after the machine has stood still.
const (
	releasePoll     = 10 * time.Millisecond
	releasePatience = 10  // polls without progress after which workers are left behind
	releaseBound    = 100 // polls after which a cycle stops waiting, and a finalizer that blocks is reported
	manyStuck       = 16  // from this number on, workers are left behind only after releaseBound
	firstNap        = 50 * time.Microsecond
	longestNap      = time.Millisecond
)

var (
	errGoexit     = errors.New("it called runtime.Goexit, as testing.T.FailNow does")
	errFinalizers = Blocked("gc: finalizers or cleanups that are due do not finish: one of them blocks, and what cycles find dead waits for it")
)

// A Blocked error says that finalizers, cleanups or releases do not return.
type Blocked string

func (b Blocked) Error() string { return string(b) }

// NewReleases returns the releases of host.
func NewReleases(host Host) *Releases {
	r := &Releases{host: host}
	r.changed.L = &r.mu
	return r
}

// Found gives dead objects of m back, as the yield of c. Counted means that finalizers and cleanups of
// the program free the memory.
func (r *Releases) Found(c *Cycle, m *Memory, dead Remains, counted bool) {
	now := r.host.Engine.Pending()
	b := &batch{
		cycle: c, memory: m, dead: dead, n: dead.Len(),
		finalizers: now.Finalizers, counted: counted, marks: now.Marked,
	}
	bytes := int64(0)
	for i := range b.n {
		bytes += dead.Bytes(i)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m.dying += bytes
	if r.passes(b, now) {
		r.begin(b)
	} else if r.early = append(r.early, b); len(r.early) == 1 {
		r.passed = r.polls
	}
	if !r.minding {
		r.minding = true
		go r.mind()
	}
}

// passes reports whether b may be given back. The runtime takes all queued finalizers at once and
// runs the latest first. So first as many have to run as were queued when b was found. The runtime has
// then taken all of these. After that, as many have to run as were queued at that moment.
func (r *Releases) passes(b *batch, now goruntime.Pending) bool {
	if !b.taken && now.Finalized >= b.finalizers {
		b.taken, b.finalizers = true, now.Finalizers
	}
	if !b.taken || now.Finalized < b.finalizers {
		return false
	}
	return !b.counted || now.Done(b.marks)
}

// begin makes b ready for workers. The caller holds mu.
func (r *Releases) begin(b *batch) {
	r.ready = append(r.ready, b)
	r.hire()
}

// hire starts a worker if an object waits for one and none is at work. The caller holds mu.
func (r *Releases) hire() {
	if r.busy == 0 && len(r.ready) > 0 {
		w := &worker{shift: r.shift}
		r.take(w)
		r.busy++
		r.moved = r.polls
		go func() {
			for r.giveBack(w) {
			}
		}()
	}
}

// take gives w the next object. One must be waiting. The caller holds mu.
func (r *Releases) take(w *worker) {
	w.batch, w.i = r.ready[0], r.ready[0].next
	if w.batch.next++; w.batch.next == w.batch.n {
		r.ready[0] = nil // otherwise the arguments of its objects would stay reachable
		r.ready = r.ready[1:]
	}
}

// giveBack calls the release of w's object, and gives w the next object. It returns false if w has to
// end.
func (r *Releases) giveBack(w *worker) (more bool) {
	failure := errGoexit
	defer func() {
		if !r.host.Strict {
			if e := recover(); e != nil {
				failure = fmt.Errorf("it panicked: %v\n%s", e, debug.Stack())
			}
		}
		more = r.done(w, failure)
	}()
	w.batch.dead.Give(w.i)
	failure = nil
	return true
}

// done counts w's object as given back, and gives w the next one. It returns false if w has to end.
func (r *Releases) done(w *worker, failure error) (more bool) {
	if failure != nil { // counted before the cycle can end
		r.host.Fail(fmt.Errorf("gc: the release of a dead object's memory failed: %w", failure))
	}
	b, bytes := w.batch, w.batch.dead.Bytes(w.i)
	r.mu.Lock()
	b.memory.dying -= bytes
	late := b.cycle.over
	if !late {
		b.cycle.add(b.memory, bytes)
		b.cycle.objects++
	}
	r.moved = r.polls
	if w.shift != r.shift { // w was left behind
		w.shift = r.shift
		r.stuck--
		r.busy++
	}
	if more = len(r.ready) > 0 && failure != errGoexit; more {
		r.take(w)
	} else if r.busy--; r.busy == 0 {
		r.hire() // after runtime.Goexit objects may be left
		r.changed.Broadcast()
	}
	r.mu.Unlock()
	if late {
		r.host.Late(bytes)
	}
	return more
}

// add adds bytes to the yield of c. The caller holds the mu of the releases.
func (c *Cycle) add(m *Memory, bytes int64) {
	m.Returning.Add(bytes)
	if c.yields == nil {
		c.yields = make(map[*Memory]int64)
	}
	c.yields[m] += bytes
}

// mind is the goroutine of the minder. It runs while memory is being given back. It begins batches
// that pass their fence, and leaves stuck workers behind.
func (r *Releases) mind() {
	slept := time.Duration(0)
	for nap, more := firstNap, true; more; nap = min(2*nap, longestNap) {
		time.Sleep(nap)
		now := r.host.Engine.Pending()
		r.mu.Lock()
		r.early = slices.DeleteFunc(r.early, func(b *batch) (passes bool) {
			if passes = r.passes(b, now); passes {
				r.begin(b)
				r.moved, r.passed = r.polls, r.polls
			}
			return passes
		})
		var failures []error
		if slept += nap; slept >= releasePoll {
			slept = 0
			failures = r.poll()
		}
		more = r.busy > 0 || len(r.early) > 0
		r.minding = more
		r.changed.Broadcast()
		r.mu.Unlock()
		for _, err := range failures {
			r.host.Fail(err)
		}
	}
}

// poll leaves workers behind that make no progress, and returns failures to report. The caller holds
// mu.
func (r *Releases) poll() (failures []error) {
	r.polls++
	if still := r.polls - r.moved; r.busy > 0 && still > releasePatience && (r.stuck < manyStuck || still >= releaseBound) {
		r.stuck += r.busy
		r.busy = 0
		r.shift++
		r.hire()
		if r.stuck >= manyStuck && !r.blocked {
			failures = append(failures, Blocked(fmt.Sprintf("gc: %d releases do not return, and each keeps a goroutine: what they would give back stays live, and others are released late", r.stuck)))
		}
		r.blocked = r.stuck >= manyStuck
	}
	if len(r.early) > 0 && r.polls-r.passed > releaseBound {
		r.passed = math.MaxInt
		failures = append(failures, errFinalizers)
	}
	return failures
}

// Wait waits until all memory is given back. It does not wait for stuck workers, and no longer than
// releaseBound. If only finalizers are left and none runs, it waits for releasePatience.
func (r *Releases) Wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for from := r.polls; r.polls < from+releaseBound; r.changed.Wait() {
		still := r.polls - max(from, r.moved)
		if r.busy == 0 && (len(r.early) == 0 || still > releasePatience) {
			return
		}
	}
}

// Credit adds bytes of m that the program has given back to the yield of c.
func (r *Releases) Credit(c *Cycle, m *Memory, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.add(m, bytes)
}

// Await waits until done returns true, but no longer than bound. The wait is not a cost of c.
func (c *Cycle) Await(bound time.Duration, done func() bool) {
	begin := time.Now()
	for nap := 2 * firstNap; time.Since(begin) < bound; nap = min(2*nap, longestNap) {
		if time.Sleep(nap); done() {
			break
		}
	}
	c.Waited += time.Since(begin)
}

// Close completes the yield of a cycle. It returns the objects and the bytes of each memory that were
// given back.
func (r *Releases) Close(c *Cycle) (objects int, yields map[*Memory]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.over = true
	return c.objects, c.yields
}

// Dying returns the bytes of m that were found dead and are not given back yet.
func (r *Releases) Dying(m *Memory) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return m.dying
}

// Pending returns the number of dead objects that are not given back yet.
func (r *Releases) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.busy + r.stuck
	for _, b := range slices.Concat(r.early, r.ready) {
		n += b.n - b.next
	}
	return n
}
