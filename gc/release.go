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
// a cycle, panic, or end its goroutine. So it runs apart from cycles, on
// goroutines called hands; there is one as long as that is enough. A cycle waits
// while its releases get on. A hand that is stuck in one is left behind, and
// another takes over what is not begun.
type releases struct {
	patience int  // looks at which none has ended before the hands at work are left behind
	bound    int  // looks after which a cycle waits no longer
	strict   bool // panics are not contained
	late     func(bytes int64)
	failed   func(error) (say func())

	mu       sync.Mutex
	lots     []*lot         // that have objects which no hand has taken up
	waiting  int            // such objects
	busy     map[*hand]bool // at work, and not left behind
	stuck    int            // hands that are left behind
	finished uint64         // releases that have ended
	idle     chan struct{}  // closed once nobody is busy; nil = nobody waits for that
}

// A lot is what one chunk of a registry had of dead objects.
type lot struct {
	cycle *collection
	gate  *Gate
	dead  interface {
		bytes(i int) int64
		give(i int)
	}
	next, n int   // the first object that no hand has taken up, and their number
	freed   int64 // bytes given back in time to be the cycle's yield
}

// A hand is a goroutine that gives back.
type hand struct {
	lot  *lot
	i    int  // of the object at work
	left bool // behind
}

// A cycle looks at its releases now and then. What counts is looks and not time: when the
// machine stands still for a while, no release is stuck.
const (
	releaseLook     = 10 * time.Millisecond // between two looks
	releasePatience = 10
	releaseBound    = 100
	maxStuck        = 16 // hands left behind; when there are as many, what is not begun waits for one of them
)

// errGoexit is the failure of a release that ends its goroutine.
var errGoexit = errors.New("it called runtime.Goexit, as testing.T.FailNow does")

func newReleases(c *Collector) *releases {
	return &releases{
		patience: releasePatience, bound: releaseBound, strict: c.strict,
		late: c.releasedLate, failed: c.releaseFailed, busy: make(map[*hand]bool),
	}
}

// found has a lot of dead objects given back, as the yield of r.
func (r *collection) found(l *lot) {
	all := r.releases
	all.mu.Lock()
	defer all.mu.Unlock()
	l.cycle = r
	r.lots = append(r.lots, l)
	all.lots = append(all.lots, l)
	all.waiting += l.n
	if len(all.busy) == 0 {
		all.hire()
	}
}

// credit counts bytes of g that others have given back as the yield of r.
func (r *collection) credit(g *Gate, bytes int64) {
	r.releases.mu.Lock()
	defer r.releases.mu.Unlock()
	g.yield.Add(bytes)
	r.lots = append(r.lots, &lot{gate: g, freed: bytes})
}

// hire starts a hand, if there is something for it to do. The caller holds mu.
func (r *releases) hire() {
	if r.waiting > 0 && r.stuck < maxStuck {
		h := new(hand)
		r.take(h)
		r.busy[h] = true
		go r.work(h)
	}
}

// take makes h take up the next object, of which there is one. The caller holds mu.
func (r *releases) take(h *hand) {
	h.lot, h.i = r.lots[0], r.lots[0].next
	if h.lot.next++; h.lot.next == h.lot.n {
		r.lots[0] = nil // or what it owned would stay reachable
		r.lots = r.lots[1:]
	}
	r.waiting--
}

// work is the goroutine of a hand.
func (r *releases) work(h *hand) {
	ended := false
	defer func() {
		if !ended { // the goroutine is on its way out
			r.done(h, errGoexit)
		}
	}()
	for more := true; more; {
		more = r.done(h, r.giveBack(h))
	}
	ended = true
}

// giveBack returns why the release of h's object failed, or nil.
func (r *releases) giveBack(h *hand) (failure error) {
	if !r.strict {
		defer func() {
			if e := recover(); e != nil {
				failure = fmt.Errorf("it panicked: %v\n%s", e, debug.Stack())
			}
		}()
	}
	h.lot.dead.give(h.i)
	return nil
}

// done counts that h's object is given back, and gives h the next one. It returns
// false if there is none for it.
func (r *releases) done(h *hand, failure error) (more bool) {
	if failure != nil { // counted first: whoever sees the cycle end sees that it failed
		defer r.failed(fmt.Errorf("gc: the release of a dead object's memory failed: %w", failure))()
	}
	l, bytes := h.lot, h.lot.dead.bytes(h.i)
	r.mu.Lock()
	over := l.cycle.over
	if !over {
		l.gate.yield.Add(bytes)
		l.freed += bytes
		l.cycle.objects++
	}
	r.finished++
	more = r.waiting > 0 && failure != errGoexit
	if h.left {
		h.left = false
		r.stuck--
		r.busy[h] = true
	}
	if more {
		r.take(h)
	} else {
		r.leaves(h)
	}
	r.mu.Unlock()
	if over {
		r.late(bytes)
	}
	return more
}

// leaves counts that a hand goes. The caller holds mu.
func (r *releases) leaves(h *hand) {
	delete(r.busy, h)
	if len(r.busy) > 0 {
		return
	}
	r.hire() // if it goes with work left
	if len(r.busy) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// wait returns once all is given back but what hands are stuck in, or after the
// bound.
func (r *releases) wait() {
	var timer *time.Timer
	finished, still := uint64(0), -1 // releases that had ended at the last look; looks since one has
	for range r.bound {
		r.mu.Lock()
		if still++; r.finished != finished {
			finished, still = r.finished, 0
		}
		if still == r.patience {
			r.leave()
			still = 0
		}
		if len(r.busy) == 0 {
			r.mu.Unlock()
			return
		}
		if r.idle == nil {
			r.idle = make(chan struct{})
		}
		idle := r.idle
		r.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(releaseLook)
			defer timer.Stop()
		} else {
			timer.Reset(releaseLook)
		}
		select {
		case <-idle:
			return
		case <-timer.C:
		}
	}
}

// leave leaves the hands at work behind. The caller holds mu.
func (r *releases) leave() {
	for h := range r.busy {
		h.left = true
		r.stuck++
	}
	clear(r.busy)
	r.hire()
}

// close ends the time in which releases count as the yield of a cycle, and
// returns how many objects did, and how many bytes by gate.
func (r *releases) close(cycle *collection) (objects int, yields map[*Gate]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cycle.over = true
	yields = make(map[*Gate]int64)
	for _, l := range cycle.lots {
		yields[l.gate] += l.freed
	}
	cycle.lots = nil
	return cycle.objects, yields
}

// pending returns how many dead objects are not given back yet.
func (r *releases) pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting + len(r.busy) + r.stuck
}
