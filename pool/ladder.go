package pool

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc/governor"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool/internal/guard"
	"github.com/eagergc/eagergc/trace"
)

// A Step is one step of the refusal ladder, which an allocation climbs when it does not fit. The
// cheapest step comes first, and the allocation is tried again after each. The order follows
// CUDA.jl's retry_reclaim (CUDA.jl#3118). The numbers are part of the trace format: they are in
// Refuse events.
type Step uint32

const (
	StepReap        Step = iota // give back memory that a finished cycle has found dead
	StepPurge                   // call Reclaimable.Purge
	StepWait                    // wait for the running cycle
	StepSynchronize             // wait for queued work, and take back the memory that it used
	StepCollect                 // run a cycle, and wait until it has settled
	StepDrop                    // call Reclaimable.Drop
	steps
)

var stepNames = [steps]string{"reap", "purge", "wait", "synchronize", "collect", "drop"}

// String returns the name of the step in lower case.
func (s Step) String() string {
	if s < steps {
		return stepNames[s]
	}
	return "unknown"
}

// ladder is what all climbers share. A climber is an allocation on the ladder. No lock is held
// while a step runs.
type ladder struct {
	climbed, failed atomic.Int64
	waiters         atomic.Int32 // climbers that wait until a block is freed
	waiting         atomic.Int32 // length of line

	mu           sync.Mutex
	reclaimables []*Reclaimable
	line         []turn        // refused allocations, in the order in which they came; the first climbs
	freeing      chan struct{} // closed at the next free; nil without a waiter
	rests        governor.Ladder
}

// A Climb is what one step of the ladder did.
type Climb struct {
	Step     Step
	Duration time.Duration
	Freed    int64 // bytes by which live fell
	Released int64 // bytes by which reserved fell
	Err      error // why the step failed; nil if it did not
}

// climb takes step after step until size bytes fit. The caller has its turn.
func (p *Pool) climb(size int64, stream uint32, cause error) (uint32, error) {
	var done []Climb
	moving := false
	for round, again := 1, true; again; round++ {
		before := p.collected().Freed
		for s := range steps {
			done = append(done, p.climbStep(s, size))
			moving = p.moving()
			i, err := p.find(size, stream)
			if i != 0 {
				return i, nil
			}
			cause = err
		}
		again = governor.ClimbsAgain(round, p.collected().Freed-before, size)
	}
	i, cause := p.awaitReleases(size, stream, moving, cause)
	if i != 0 {
		return i, nil
	}
	p.ladder.failed.Add(1)
	return 0, p.outOfMemory(size, cause, done)
}

// awaitReleases looks for a piece again for as long as one may still turn up: while segments move,
// and while dead memory is being given back. Moving tells whether segments moved when the last search
// began. A cycle waits for a shorter time, and on a busy machine a release may get no processor for
// that long.
func (p *Pool) awaitReleases(size int64, stream uint32, moving bool, cause error) (uint32, error) {
	c := p.collect.Load()
	for end := time.Now().Add(releaseWait); (moving || p.moving() || c != nil && c.c.Stats().Pending > 0) && time.Now().Before(end); {
		p.ladder.waitForFree(releasePoll)
		moving = p.moving()
		i, err := p.find(size, stream)
		if i != 0 {
			return i, nil
		}
		cause = err
	}
	return 0, cause
}

func (p *Pool) moving() bool { return p.group.moving.Load() > 0 }

const (
	releaseWait = 500 * time.Millisecond
	releasePoll = 5 * time.Millisecond // a segment is given back some time after its block is freed
)

func (p *Pool) climbStep(s Step, size int64) Climb {
	if s == StepCollect {
		p.backOff()
	}
	before, begin := p.group.Sample(), time.Now()
	err := p.takeStep(s)
	c := Climb{Step: s, Duration: time.Since(begin), Err: err}
	after := p.group.Sample()
	c.Freed = max(0, before.Live-after.Live)
	c.Released = max(0, before.Reserved-after.Reserved)
	if s == StepCollect {
		p.ladder.mu.Lock()
		p.ladder.rests.Collected(c.Duration, c.Freed, size)
		p.ladder.mu.Unlock()
	}
	p.record(trace.Event{Kind: trace.Refuse, Bytes: size, Duration: c.Duration, Aux: uint32(s)})
	return c
}

// takeStep takes a step for all pools of the device.
func (p *Pool) takeStep(s Step) error {
	g := p.group
	switch s {
	case StepPurge:
		return g.each(p, func(q *Pool) error { return q.eachReclaimable(Reclaimable.Purge) })
	case StepSynchronize:
		return g.each(p, func(q *Pool) error { return q.flight.synchronize(q) })
	case StepDrop:
		return g.each(p, func(q *Pool) error { return q.eachReclaimable(Reclaimable.Drop) })
	}
	for _, c := range g.collectors(p) {
		switch s {
		case StepReap:
			c.Reap()
		case StepWait:
			c.Wait()
		case StepCollect:
			c.Collect(policy.TriggerRefusal)
		}
	}
	return nil
}

// Retry calls try, which allocates memory of the device beside the pools, and returns its error.
// While that is [ErrOutOfMemory], the pools of the device give cached memory back. Then Retry takes
// the steps of the ladder, one before each further call.
func (p *Pool) Retry(try func() error) error {
	err := try()
	for s := Step(0); s <= steps && errors.Is(err, ErrOutOfMemory); s++ {
		if s > 0 {
			if failed := p.takeStep(s - 1); failed != nil {
				p.warn(failed)
			}
		}
		p.FreeAllBlocks()
		p.group.yield(p, MaxBytes)
		err = try()
	}
	return err
}

// backOff waits before a collection, until a block is freed or the rest is over.
func (p *Pool) backOff() {
	p.ladder.mu.Lock()
	wait := p.ladder.rests.Rest()
	p.ladder.mu.Unlock()
	if wait > 0 {
		p.ladder.waitForFree(wait)
	}
}

// waitForFree returns when a block is freed, or after the time.
func (l *ladder) waitForFree(wait time.Duration) {
	l.mu.Lock()
	l.freeing = make(chan struct{})
	freeing := l.freeing
	l.waiters.Store(1)
	l.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-freeing:
	case <-t.C:
	}
	l.waiters.Store(0)
}

// freed wakes a climber that waits for memory.
func (l *ladder) freed() {
	if l.waiters.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freeing != nil {
		close(l.freeing)
		l.freeing = nil
	}
}

// A turn is a place in the line for the ladder. It is closed when all that were before it have
// left. Nil is no place.
type turn chan struct{}

// lineMax bounds how long an allocation stands in line. When it is over it takes its turn although
// others are before it.
const lineMax = time.Second

// getInLine puts the caller at the end of the line and waits until its turn has come. Until
// leaveLine, blocks that are freed go past the caches to the core, where those in line look first.
// Otherwise goroutines that allocate fast would take everything out of their caches.
func (p *Pool) getInLine() turn {
	p.bypass.Add(1)
	l := &p.ladder
	t := make(turn)
	l.mu.Lock()
	l.line = append(l.line, t)
	l.waiting.Store(int32(len(l.line)))
	first := len(l.line) == 1
	l.mu.Unlock()
	if first {
		return t
	}
	timeout := time.NewTimer(lineMax)
	defer timeout.Stop()
	select {
	case <-t:
	case <-timeout.C:
	}
	return t
}

func (p *Pool) leaveLine(t turn) {
	if t == nil {
		return
	}
	l := &p.ladder
	l.mu.Lock()
	k := slices.Index(l.line, t)
	l.line = slices.Delete(l.line, k, k+1)
	l.waiting.Store(int32(len(l.line)))
	if k == 0 && len(l.line) > 0 {
		close(l.line[0])
	}
	l.mu.Unlock()
	p.bypass.Add(-1)
}

// A Reclaimable is a cache or workspace that can give memory of the pool back. Its methods run on a
// goroutine that needs memory. They must not allocate from the pool, and must not wait for a
// goroutine that does.
type Reclaimable interface {
	Purge() // gives back memory that is cheap to make again
	Drop()  // gives back everything that can be made again
}

// Register makes the ladder ask r for memory, until cancel is called.
func (p *Pool) Register(r Reclaimable) (cancel func()) {
	l := &p.ladder
	l.mu.Lock()
	defer l.mu.Unlock()
	key := new(Reclaimable)
	*key = r
	l.reclaimables = append(l.reclaimables, key)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reclaimables = slices.DeleteFunc(l.reclaimables, func(k *Reclaimable) bool { return k == key })
	}
}

func (p *Pool) eachReclaimable(do func(Reclaimable)) (first error) {
	p.ladder.mu.Lock()
	list := slices.Clone(p.ladder.reclaimables)
	p.ladder.mu.Unlock()
	for _, r := range list {
		if err := guard.Error(func() error { do(*r); return nil }); err != nil && first == nil {
			first = err
		}
	}
	return first
}
