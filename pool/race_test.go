package pool

import (
	"testing"
	"time"
)

// TestClimbersAreWokenByWhatIsSetAside: a block that another stream has used goes past
// the caches when it is freed, and may be what a climber waits for.
func TestClimbersAreWokenByWhatIsSetAside(t *testing.T) {
	p := newPool(t, Config{})
	b, err := p.Alloc(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Use(b, 1)
	woken := make(chan struct{})
	go func() {
		p.ladder.waitForFree(time.Minute)
		close(woken)
	}()
	for p.ladder.waiters.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.Free(b)
	select {
	case <-woken:
	case <-time.After(20 * time.Second):
		t.Error("a climber sleeps on, though a block was freed")
		p.ladder.freed()
		<-woken
	}
}

// TestAFreeThatRacesCloseLeavesNothing stops a free where its cache is unlocked, and
// closes the pool there: nobody empties the core after that.
func TestAFreeThatRacesCloseLeavesNothing(t *testing.T) {
	p := newPool(t, Config{})
	b, err := p.Alloc(keepMax+1, 0) // more than a cache keeps
	if err != nil {
		t.Fatal(err)
	}
	i := uint32(b.ref)
	f := p.lockCache()
	p.core.headers.at(i).gen.Add(1)
	f.count.Give(p.core.headers.at(i).size)
	rest, _ := f.push(&p.core.headers, i)
	f.mu.Unlock()
	p.Close()
	p.overflow(rest)
	if left := p.tracker.Reserved(); rest == 0 || left != 0 {
		t.Errorf("%d bytes are reserved after Close, and nothing is in use", left)
	}
}
