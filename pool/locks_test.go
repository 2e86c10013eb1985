package pool_test

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// needy is all the code that a pool calls and that is not its own: an upstream
// with everything, a reclaimable, a sink, and what it is told to warn. Each call
// uses the pool and asks its collector, which would never return if a lock
// of the pool's were held during the call.
type needy struct {
	pool.Host
	mu     sync.Mutex
	p      *pool.Pool
	c      *gc.Collector
	spare  []pool.Block
	calls  map[string]int
	inside atomic.Bool // one of its calls is under way
	breaks atomic.Bool // calls fail
}

// touch uses the pool, unless this is what another touch has led to.
func (u *needy) touch(from string) error {
	u.mu.Lock()
	u.calls[from]++
	p := u.p
	u.mu.Unlock()
	if p == nil || u.inside.Swap(true) {
		return nil
	}
	defer u.inside.Store(false)
	p.Stats()
	p.Sample()
	p.Allocated()
	p.ResetPeaks()
	p.Holders(3)
	p.Report(new(strings.Builder))
	p.Check()
	p.FreeAllBlocks()
	p.Register(u)()
	u.mu.Lock()
	spare := u.spare
	u.spare = nil
	u.mu.Unlock()
	for _, b := range spare {
		p.Use(b, 9)
		p.Free(b)
	}
	u.c.Stats()
	u.c.Policy()
	u.c.Snapshot()
	u.c.Due()
	if u.breaks.Load() {
		return errors.New("broken on purpose")
	}
	return nil
}

func (u *needy) Allocate(n int64, s uint32) (uintptr, error) {
	u.touch("allocate")
	return u.Host.Allocate(n, s)
}

func (u *needy) Release(a uintptr, n int64, s uint32) error {
	if err := u.touch("release"); err != nil {
		return err
	}
	return u.Host.Release(a, n, s)
}

func (u *needy) Info() (pressure.Info, error) {
	u.touch("info")
	return u.Host.Info()
}

func (u *needy) Fence(uint32) (pool.Fence, error) { return u, u.touch("fence") }
func (u *needy) Done() (bool, error)              { return true, u.touch("done") }
func (u *needy) Close() error                     { return u.touch("close fence") }
func (u *needy) Synchronize() error               { return u.touch("synchronize") }
func (u *needy) Settle(uint32, bool) error        { return u.touch("settle") }
func (u *needy) Purge()                           { u.touch("purge") }
func (u *needy) Drop()                            { u.touch("drop") }
func (u *needy) Record(trace.Event)               { u.touch("record") }
func (u *needy) Label(string) uint32              { u.touch("label"); return 0 }
func (u *needy) Now() time.Duration               { return 0 }
func (u *needy) warn(error)                       { u.touch("warn") }

// soon fails the test with the stacks of all goroutines if do does not return.
func soon(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("deadlock:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

func TestNoLockIsHeldDuringCalls(t *testing.T) {
	for name, cfg := range map[string]pool.Config{"caching": {}, "direct": {Direct: true}, "sites": {Sites: 1}} {
		t.Run(name, func(t *testing.T) {
			c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			u := &needy{c: c, calls: map[string]int{}}
			cfg.Upstream, cfg.Collector, cfg.Warn, cfg.Trace = u, c, u.warn, u
			cfg.Limits.Hard.Bytes = 16 << 20
			p, err := pool.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			u.p = p
			defer p.Register(u)()
			soon(t, func() { driveAll(t, u, p, c) })
			want := []string{"allocate", "close fence", "done", "drop", "fence", "info", "purge", "record", "release", "settle", "synchronize", "sync", "do", "reach", "warn"}
			for _, w := range want {
				if u.calls[w] == 0 {
					t.Errorf("%s was not called: %v", w, slices.Sorted(maps.Keys(u.calls)))
				}
			}
		})
	}
}

// driveAll makes the pool call everything that it may call.
func driveAll(t *testing.T, u *needy, p *pool.Pool, c *gc.Collector) {
	alloc := func(n int64) pool.Block {
		b, err := p.Alloc(n, 0)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	for round := range 4 {
		u.mu.Lock()
		u.spare = nil
		u.mu.Unlock()
		spare := []pool.Block{alloc(1000), alloc(3 << 20)}
		u.mu.Lock()
		u.spare = spare
		u.mu.Unlock()
		u.breaks.Store(round == 2) // which has something to warn of
		big := alloc(9 << 20)
		if _, err := p.Alloc(9<<20, 0); !errors.Is(err, pool.ErrOutOfMemory) {
			t.Error(err)
		}
		for range 3 {
			a, err := array.New[byte](p, 1<<20) // left to a cycle
			if err != nil {
				t.Error(err)
			}
			a.Do(func([]byte) error { return u.touch("do") })
			a.Reach(func(array.Memory) error { return u.touch("reach") })
		}
		c.Collect(policy.TriggerExplicit)
		p.Use(big, 5)
		p.Free(big)
		p.Sync(nil, func() error { return u.touch("sync") })
		p.Synchronize()
		p.Reclaim(pool.StepDrop)
		p.Report(new(strings.Builder))
		divided(t, p)
	}
	u.breaks.Store(false)
	p.Close()
}

// divided leaves a segment with a free part and asks for more than is left.
func divided(t *testing.T, p *pool.Pool) {
	var held []pool.Block
	for range 3 {
		if b, err := p.Alloc(5<<20, 0); err == nil {
			held = append(held, b)
		}
	}
	for i, b := range held {
		if i != 1 {
			p.Free(b)
		}
	}
	if b, err := p.Alloc(10<<20, 0); err == nil {
		p.Free(b)
	}
	if len(held) > 1 {
		p.Free(held[1])
	}
}
