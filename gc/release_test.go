package gc

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc/policy"
)

// A scriptedBatch has objects of 10 bytes, whose releases tell which one they are and wait until the test lets them go.
type scriptedBatch struct {
	began chan int
	goOn  []chan error // a panic, if it is not nil
}

func newScripted(n int) *scriptedBatch {
	b := &scriptedBatch{began: make(chan int, n)}
	for range n {
		b.goOn = append(b.goOn, make(chan error, 1))
	}
	return b
}

func (b *scriptedBatch) bytes(int) int64 { return 10 }
func (b *scriptedBatch) give(i int) {
	b.began <- i
	if err := <-b.goOn[i]; err != nil {
		panic(err)
	}
}

// TestStuckReleases walks two rounds of releases that do not return in time: each is left behind, others take over, what comes
// late counts for no cycle but for the collector, and the books say so at every step.
func TestStuckReleases(t *testing.T) {
	log := &events{level: slog.LevelError}
	c := newOn(newPuppet(), Config{Idle: -1, Log: slog.New(log)}, policy.Spec{}.New())
	patient(c) // the test leaves them behind
	r, g := c.releases, c.NewGate(new(level))
	defer func() { atRest(t, c); c.Close() }()
	books := func(what string, waiting, busy, stuck int, dying int64) {
		t.Helper()
		waitFor(t, 20*time.Second, func() bool { return c.releases.dying(g) == dying && c.Stats().Pending == waiting+busy+stuck })
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.waiting != waiting || len(r.busy) != busy || r.stuck != stuck {
			t.Errorf("%s: %d waiting, %d at work, %d stuck, want %d, %d and %d", what, r.waiting, len(r.busy), r.stuck, waiting, busy, stuck)
		}
	}
	late, bytes := uint64(0), int64(0)
	for round := range 2 {
		cycle, b := c.newCollection(policy.TriggerExplicit, policy.Decision{}, g), newScripted(5)
		cycle.found(&batch{gate: g, dead: b, n: 5})
		for i := range 3 {
			if k := <-b.began; k != i {
				t.Fatalf("object %d is released, want %d", k, i)
			}
			books("one more", 4-i, 1, i, 50)
			if i < 2 {
				r.mu.Lock()
				r.leave()
				r.mu.Unlock()
			}
		}
		for i := range 2 { // the first comes back, and goes on with what is left; then that one does
			if b.goOn[3*i] <- nil; <-b.began != 3+i {
				t.Fatal("the objects are not released in their order")
			}
			books("one is back", 1-i, 2, 1, int64(40-10*i))
		}
		objects, yields := r.close(cycle)
		if objects != 2 || len(yields) != 1 || cycle.batches != nil || yields[g] != 20 || g.yield.Load() != 20 {
			t.Errorf("round %d: the cycle has %d objects and %v", round, objects, yields)
		}
		g.yield.Store(0)
		b.goOn[1] <- map[int]error{0: errors.New("too bad")}[round]
		waitFor(t, 20*time.Second, func() bool { return len(log.of(logPanicked, "")) == 1 }) // which nobody has to ask for
		b.goOn[2] <- nil
		b.goOn[4] <- nil
		books("all are back", 0, 0, 0, 0)
		late, bytes = late+3, bytes+30
		waitFor(t, 20*time.Second, func() bool { s := c.Stats(); return s.Objects == late && s.Freed == bytes })
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "gc: the release of a dead object's memory failed: it panicked: too bad") || c.Stats().Failures != 1 {
		t.Errorf("%v, %d failures", err, c.Stats().Failures)
	}
}

// TestStuckReleasesAreSeen by polling, which begins anew with the next batch.
func TestStuckReleasesAreSeen(t *testing.T) {
	c := newOn(newPuppet(), Config{Idle: -1}, policy.Spec{}.New())
	c.releases.patience = 2
	r, g := c.releases, c.NewGate(new(level))
	defer func() { atRest(t, c); c.Close() }()
	for range 2 {
		cycle, b := c.newCollection(policy.TriggerExplicit, policy.Decision{}, g), newScripted(2)
		cycle.found(&batch{gate: g, dead: b, n: 2})
		<-b.began
		soon(t, 20*time.Second, "the object behind one whose release is stuck", func() { <-b.began })
		b.goOn[0] <- nil
		b.goOn[1] <- nil
		waitFor(t, 20*time.Second, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return !r.polling })
		r.close(cycle)
		g.yield.Store(0)
	}
}

// TestWhenReleasesAreGivenUp: after some polls without progress; where many are stuck, after many; and once they are many the program is told.
func TestWhenReleasesAreGivenUp(t *testing.T) {
	c := newOn(newPuppet(), Config{Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	r := newReleases(c)
	for _, test := range []struct {
		stuck, still int
		want         bool
	}{
		{0, releasePatience - 1, false}, {0, releasePatience, true}, {manyStuck - 1, releasePatience, true}, {manyStuck, releasePatience, false},
		{manyStuck, releaseBound - 1, false}, {manyStuck, releaseBound, true}, {2 * manyStuck, releaseBound, true},
	} {
		if r.stuck = test.stuck; r.gaveUp(test.still) != test.want {
			t.Errorf("%+v: given up %v", test, !test.want)
		}
	}
	r.stuck = 0
	for i := 1; i <= manyStuck+2; i++ {
		w := new(worker)
		r.busy[w] = true
		err := r.leave()
		if (err != nil) != (i == manyStuck) || !w.left || r.stuck != i || len(r.busy) > 0 {
			t.Errorf("worker %d: %v, %d stuck, left %v", i, err, r.stuck, w.left)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "gc: 16 releases do not return") {
			t.Error(err)
		}
	}
	r.stuck = 3 // they have come back
	r.leave()
	if r.stuck = manyStuck; r.leave() == nil {
		t.Error("when they are many again nobody is told")
	}
	r.stuck, r.waiting, r.early = 2, 5, []*batch{{n: 3}, {n: 4}}
	if r.busy[new(worker)] = true; r.pending() != 15 {
		t.Errorf("%d pending of 2 stuck, 5 waiting, 1 at work and 7 early", r.pending())
	}
}

// TestAFenceIsOfTheTimeWhenABatchIsFound, and a batch has what its objects hold.
func TestAFenceIsOfTheTimeWhenABatchIsFound(t *testing.T) {
	e := newPuppet()
	c := newOn(e, Config{Idle: -1}, policy.Spec{}.New())
	defer c.Close()
	patient(c)
	e.begun.Store(5)
	g := c.NewGate(new(level))
	cycle, dead := c.newCollection(policy.TriggerExplicit, policy.Decision{}, g), newScripted(3)
	counted := &batch{gate: g, dead: dead, n: 3, counted: true}
	was := readPending().finalizers
	cycle.found(counted)
	if f := counted.fence; f.marks != 5 || f.finalizers < was || counted.cycle != cycle || len(cycle.batches) != 1 || c.releases.dying(g) != 30 || c.Stats().Pending != 3 {
		t.Errorf("%+v of %d finalizers, %d dying, %d pending", counted.fence, was, c.releases.dying(g), c.Stats().Pending)
	}
	select {
	case <-dead.began:
		t.Error("what is counted is given back before the sweep has ended")
	case <-time.After(10 * ms):
	}
	for i := range 3 {
		dead.goOn[i] <- nil
	}
	e.sweeps.Store(5)
	waitFor(t, 20*time.Second, func() bool { return c.Stats().Pending == 0 })
	if objects, yields := c.releases.close(cycle); objects != 3 || yields[g] != 30 || c.releases.dying(g) != 0 {
		t.Errorf("%d objects, %v, %d dying", objects, yields, c.releases.dying(g))
	}
	g.yield.Store(0)
}

// TestWaitingForReleases ends when all are back, when none has ended for long and nothing but finalizers is waited for, and after the bound.
func TestWaitingForReleases(t *testing.T) {
	for name, test := range map[string]struct {
		set         func(*releases)
		least, most int // polls
	}{
		"nothing to be done":    {func(*releases) {}, 0, 1},
		"one is at work":        {func(r *releases) { r.busy[new(worker)] = true }, 6, 1000},
		"finalizers are stuck":  {func(r *releases) { r.early = []*batch{{}} }, 3, 1000},
		"finalizers get on":     {func(r *releases) { r.early = []*batch{{}}; r.finished = 1 }, 3, 1000},
		"one is at work, early": {func(r *releases) { r.early = []*batch{{}}; r.busy[new(worker)] = true }, 6, 1000},
	} {
		r := &releases{patience: 3, bound: 6, busy: make(map[*worker]bool)}
		test.set(r)
		began := time.Now()
		if r.wait(); time.Since(began) < time.Duration(test.least)*releasePoll || test.most == 1 && r.idle != nil {
			t.Errorf("%s: waits for %v", name, time.Since(began))
		}
	}
	r := &releases{patience: 1 << 30, bound: 1 << 30, busy: map[*worker]bool{new(worker): true}}
	var all sync.WaitGroup
	for range 3 {
		beside(&all, r.wait)
	}
	waitFor(t, 20*time.Second, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.idle != nil })
	r.mu.Lock()
	r.noteIdle() // one is at work still
	kept := r.idle != nil
	clear(r.busy)
	r.noteIdle()
	r.mu.Unlock()
	soon(t, 20*time.Second, "waiting for releases that have ended", all.Wait)
	if !kept || r.idle != nil {
		t.Errorf("idle while one is at work: %v, and still waited for: %v", !kept, r.idle != nil)
	}
}

// TestFinalizersThatBlockAreToldOnce: after a second in which no batch has passed, and again after one has.
func TestFinalizersThatBlockAreToldOnce(t *testing.T) {
	start := time.Now()
	quiet := silence{since: start}
	for i, step := range []struct {
		at     time.Duration
		passed bool
		told   bool
	}{
		{finalizersBound, false, false}, {finalizersBound + 1, false, true}, {5 * finalizersBound, false, false},
		{6 * finalizersBound, true, false}, {7 * finalizersBound, false, false}, {7*finalizersBound + 1, false, true}, {9 * finalizersBound, true, false},
	} {
		if told := quiet.isLong(start.Add(step.at), step.passed); told != step.told {
			t.Errorf("step %d: told %v", i, told)
		}
	}
}
