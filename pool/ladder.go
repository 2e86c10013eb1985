package pool

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/trace"
)

// A Step is one step of the refusal ladder, which an allocation climbs when it
// does not fit. The cheapest step comes first, and the allocation is tried again
// after each. The order follows CUDA.jl's retry_reclaim (CUDA.jl#3118). The numbers
// are part of the trace format: they are in Refuse events.
type Step uint32

const (
	StepReap        Step = iota // give back what a finished cycle has found dead
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

// ladder is what all climbers share. A climber is an allocation on the ladder. No
// lock is held while a step runs.
type ladder struct {
	awaited, climbed, failed atomic.Int64
	spent                    atomic.Int64 // ns, in all steps
	waiters                  atomic.Int32 // climbers that wait until a block is freed
	waiting                  atomic.Int32 // length of line

	mu           sync.Mutex
	reclaimables []*Reclaimable
	line         []turn        // those who are refused, in the order in which they came; the first climbs
	freeing      chan struct{} // closed at the next free; nil if nobody waits for it
	futile       int           // number of collections in a row that freed too little
	cost         time.Duration // of the last collection
}

// A Climb is what one step of the ladder did.
type Climb struct {
	Step     Step
	Duration time.Duration
	Freed    int64 // bytes by which live fell
	Released int64 // bytes by which reserved fell
	Err      error // why the step failed; nil if it did not
}

// awaitCycle waits for the running cycle, if there is one, and looks for a piece
// again. Such a wait is no refusal: the cycle was started before the memory ran out.
func (p *Pool) awaitCycle(size int64, stream uint32, cause error) (uint32, error) {
	c := p.collect.Load()
	for try := 0; c != nil && try < awaitMax && c.c.Wait(); try++ {
		p.ladder.awaited.Add(1)
		i, err := p.find(size, stream)
		if i != 0 {
			return i, nil
		}
		cause = err
	}
	return 0, cause
}

const awaitMax = 4 // tries: other goroutines may take what the first cycle has freed

// climb takes step after step until size bytes fit. The caller has its turn.
func (p *Pool) climb(size int64, stream uint32, cause error) (uint32, error) {
	var done []Climb
	for round := 0; round < maxRounds; round++ {
		before := p.foundByCycles()
		for s := range steps {
			done = append(done, p.climbStep(s, size))
			i, err := p.find(size, stream)
			if i != 0 {
				return i, nil
			}
			cause = err
		}
		if p.foundByCycles()-before < size {
			break // if cycles had found size bytes, another goroutine took them: try again
		}
	}
	i, cause := p.awaitReleases(size, stream, cause)
	if i != 0 {
		return i, nil
	}
	p.ladder.failed.Add(1)
	return 0, p.outOfMemory(size, cause, done)
}

const maxRounds = 3

// awaitReleases looks for a piece again while releases of what cycles have found
// dead are under way. A cycle waits for less: on a busy machine a release may get
// no processor for so long.
func (p *Pool) awaitReleases(size int64, stream uint32, cause error) (uint32, error) {
	c := p.collect.Load()
	for end := time.Now().Add(releaseWait); c != nil && c.c.Stats().Pending > 0 && time.Now().Before(end); {
		p.ladder.waitForFree(releasePoll)
		i, err := p.find(size, stream)
		if i != 0 {
			return i, nil
		}
		cause = err
	}
	return 0, cause
}

const (
	releaseWait = 500 * time.Millisecond
	releasePoll = 5 * time.Millisecond // a segment is given back some time after its block is freed
)

// foundByCycles returns the bytes that all cycles so far have given back.
func (p *Pool) foundByCycles() int64 {
	if c := p.collect.Load(); c != nil {
		return c.c.Stats().Freed
	}
	return 0
}

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
	p.ladder.spent.Add(int64(c.Duration))
	if s == StepCollect {
		p.ladder.learn(c, size)
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
		return g.each(p, func(q *Pool) error { return q.limbo.synchronize(q) })
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
			c.Collect(gc.TriggerRefusal)
		}
	}
	return nil
}

// After a collection that freed too little, the climber waits before the next one,
// until a block is freed or the time is over. The time is that of the last
// collection, doubled for each futile one in a row, up to eight times that, and
// at most maxBackOff. So a program that keeps asking for too much spends a ninth
// of its time on collections. (java.nio.Bits.reserveMemory waits 511 ms in all.)
const maxBackOff = 256 * time.Millisecond

func (p *Pool) backOff() {
	l := &p.ladder
	l.mu.Lock()
	if l.futile == 0 {
		l.mu.Unlock()
		return
	}
	wait := min(maxBackOff, l.cost<<min(l.futile-1, 3))
	l.mu.Unlock()
	l.waitForFree(wait)
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

func (l *ladder) learn(c Climb, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cost = c.Duration
	if c.Freed >= size {
		l.futile = 0
	} else {
		l.futile++
	}
}
