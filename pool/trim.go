package pool

import (
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/trace"
)

// release gives whole free segments of at least bytes in all back to the
// upstream, the largest first, or as many as there are; it returns how much
// that was. What the upstream does not take stays cached.
func (p *Pool) release(bytes int64) (released int64) {
	for _, s := range p.core.evict(bytes) {
		released += p.releaseSegment(s)
	}
	return released
}

// releaseSegment gives back a segment that is out of the core already.
func (p *Pool) releaseSegment(s span) int64 {
	if err := p.upstreamRelease(s); err != nil {
		p.warn(err)
		p.core.restore(s)
		return 0
	}
	p.tracker.Release(s.bytes)
	p.record(trace.Event{Kind: trace.Release, Bytes: s.bytes, Stream: s.stream})
	return s.bytes
}

// FreeAllBlocks gives all cached memory back to the upstream that makes up
// whole segments, and returns how much that was.
func (p *Pool) FreeAllBlocks() int64 {
	p.limbo.poll(p)
	p.flush()
	return p.release(MaxBytes)
}

// Reclaim takes the steps of the refusal ladder up to level, whether they are
// needed or not, gives cached memory back to the upstream and returns how much
// that was.
func (p *Pool) Reclaim(level Step) int64 {
	before := p.tracker.Reserved()
	for s := StepReap; s <= level; s++ {
		if err := p.takeStep(s); err != nil {
			p.warn(err)
		}
	}
	p.FreeAllBlocks()
	return max(0, before-p.tracker.Reserved())
}

// Sync calls wait, which blocks until the device or whatever else the program
// waits for is done, and returns its error. The pool's collector is asked
// before: see [gc.Collector.Sync]. Afterwards cached memory above the soft limit
// goes back to the upstream.
func (p *Pool) Sync(site *gc.WaitPlace, wait func() error) error {
	c := p.collect.Load()
	if c == nil && p.sink.Load() != nil {
		wait = p.recorded(wait)
	}
	var err error
	if c != nil {
		err = c.c.Sync(site, wait)
	} else {
		err = wait()
	}
	p.limbo.poll(p)
	p.trimToSoft()
	return err
}

// recorded records the wait, for a pool without a collector.
func (p *Pool) recorded(wait func() error) func() error {
	return func() error {
		begin := time.Now()
		err := wait()
		p.record(trace.Event{Kind: trace.Sync, Duration: time.Since(begin)})
		return err
	}
}

// Synchronize is a sync point that waits for all queued work of the upstream.
// Memory that waited for other streams is free afterwards.
func (p *Pool) Synchronize() error {
	return p.Sync(nil, func() error { return p.limbo.synchronize(p) })
}

func (p *Pool) trimToSoft() {
	soft := p.cfg.Limits.Soft.Bytes // New has resolved it
	if soft == 0 && p.hard.Load() == 0 {
		p.estimate() // the budget follows what the space has free
	}
	if soft <= 0 || p.tracker.Reserved() <= soft {
		return
	}
	p.flush()
	p.release(p.tracker.Reserved() - soft)
}

// TrimIdle gives all cached memory back whenever nothing was allocated for the
// time given. It runs on a goroutine of its own until stop is called.
func (p *Pool) TrimIdle(after time.Duration) (stop func()) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(after)
		defer tick.Stop()
		last := p.Allocated()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if now := p.Allocated(); now == last {
				p.FreeAllBlocks()
			} else {
				last = now
			}
		}
	}()
	return func() {
		select {
		case <-quit:
		default:
			close(quit)
		}
		<-stopped
	}
}

// Close collects what is dead and gives cached memory back to the upstream. Close
// the pool before its collector. Allocations fail from now on;
// blocks and arrays that are still out stay usable and go back to the upstream
// as they are freed. Closing twice is harmless.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	p.bypass.Add(1)
	p.once.Lock()
	c := p.collect.Load()
	p.once.Unlock()
	if c != nil {
		if c.owners.Len() > 0 {
			c.c.Collect(gc.TriggerExplicit) // after it nobody may look for the dead
		}
		c.gate.Close()
		if c.private {
			c.c.Close()
		}
	}
	if err := p.limbo.synchronize(p); err != nil {
		p.warn(err)
	}
	p.FreeAllBlocks()
}
