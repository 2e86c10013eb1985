package pool_test

import (
	"errors"
	"math/bits"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
	"github.com/eagergc/eagergc/trace"
)

// TestReport has the lines of CUDA.jl's pool_status, with the numbers of the moment, and what others hold of the device.
func TestReport(t *testing.T) {
	d := newDevice(100 * mib)
	cfg := pool.Config{Upstream: d, Space: pressure.Device(0), Limits: hard(90 * mib), ExactPeaks: true}
	p, q := open(t, cfg), open(t, cfg)
	x, y := alloc(t, p, 8192), alloc(t, p, 30*mib)
	p.Free(y)
	report := func() string {
		var b strings.Builder
		if err := p.Report(&b); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	const head = `Effective device0 memory usage: 32.00% (32.00 MiB/100.00 MiB)
Memory pool usage: 8.00 KiB (32.00 MiB reserved)
Memory limit: soft = none, hard = 90.00 MiB
Cached: 31.99 MiB in 2 pieces of 2 segments, largest 30.00 MiB (fragmentation 6%)
`
	const tail = `Peaks: 30.01 MiB live, 32.00 MiB reserved
Allocations: 2 of 30.01 MiB, 1 given back; 0 refused, 0 failed
`
	if got := report(); got != head+tail {
		t.Errorf("report:\n%s\nwant:\n%s", got, head+tail)
	}
	d.used += 10 * mib // another program
	z := alloc(t, q, 20*mib)
	want := strings.Replace(head, "32.00% (32.00", "62.00% (62.00", 1)
	want = strings.Replace(want, "Memory pool", "Held by others: 10.00 MiB (other programs, and memory that comes from no pool)\nMemory pool", 1) +
		"Other pools of the same memory: 20.00 MiB reserved\n" + tail
	if got := report(); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
	d.lost = errors.New("lost")
	if got := report(); !strings.HasPrefix(got, "Effective device0 memory usage: unknown\nMemory pool usage") {
		t.Errorf("report:\n%s", got)
	}
	d.lost = nil
	p.Free(x)
	q.Free(z)
	up := cacherOf{d}
	caching := open(t, pool.Config{Upstream: up, Space: pressure.Device(0), Direct: true})
	var b strings.Builder
	if caching.Report(&b); !strings.Contains(b.String(), "Cached by the upstream: 20.00 MiB (30.00 MiB reserved, at most 40.00 MiB so far)\n") {
		t.Errorf("report:\n%s", &b)
	}
}

// cacherOf says that it caches.
type cacherOf struct{ *device }

func (cacherOf) Keep(int64) error { return nil }
func (cacherOf) Trim(int64) error { return nil }
func (cacherOf) Usage() (pool.Usage, error) {
	return pool.Usage{Reserved: 30 * mib, ReservedPeak: 40 * mib, Used: 10 * mib, UsedPeak: 11 * mib}, nil
}

// TestAnOwnedBlockIsGivenBackOnce: by hand or by a cycle, and the recording says which.
func TestAnOwnedBlockIsGivenBackOnce(t *testing.T) {
	tape := new(trace.Trace)
	p := open(t, pool.Config{Trace: sink{tape}, Collector: never(t)})
	owner := new([4]*int)
	o, err := pool.Own(p, owner, alloc(t, p, mib))
	if err != nil {
		t.Fatal(err)
	}
	if !o.Free() || o.Free() || (pool.Owned{}).Free() || p.Stats().Live != 0 {
		t.Errorf("not given back exactly once: %d bytes live", p.Stats().Live)
	}
	*owner = [4]*int{}
	leave(t, p, 2*mib)
	p.Close() // collects what is left to the collector
	waitFor(t, "a cycle gives it back", func() bool { return p.Stats().Live == 0 })
	var causes []uint32
	for _, e := range tape.Events {
		if e.Kind == trace.Free {
			causes = append(causes, e.Aux)
		}
	}
	if len(causes) != 2 || causes[0] != trace.FreeExplicit || causes[1] != trace.FreeCycle {
		t.Errorf("freed because of %v", causes)
	}
	closed := open(t, pool.Config{})
	closed.Close()
	if _, err := pool.Own(closed, owner, pool.Block{}); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("left to a pool that is closed: %v", err)
	}
}

// TestCloseCollects what is left to its collector, and nothing if nothing is.
func TestCloseCollects(t *testing.T) {
	c := never(t)
	for _, owned := range []bool{false, true} {
		p := open(t, pool.Config{Upstream: newDevice(1 << 30), Collector: c})
		if owned {
			leave(t, p, mib)
		}
		before := c.Stats().Cycles[policy.TriggerExplicit]
		if p.Close(); (c.Stats().Cycles[policy.TriggerExplicit] > before) != owned {
			t.Errorf("owned %v: %d cycles", owned, c.Stats().Cycles[policy.TriggerExplicit]-before)
		}
	}
}

// TestTheCollectorsEventsGoWhereThePoolsGo, if the pool has made it; one that was given is left alone. A wait is recorded with its error kept.
func TestTheCollectorsEventsGoWhereThePoolsGo(t *testing.T) {
	count := func(s sink, k trace.Kind) (n int) {
		for _, x := range s.Events {
			if x.Kind == k {
				n++
			}
		}
		return n
	}
	first, second, third := sink{new(trace.Trace)}, sink{new(trace.Trace)}, sink{new(trace.Trace)}
	p := open(t, pool.Config{Trace: first})
	lost := errors.New("the device is lost")
	if err := p.Sync(nil, func() error { return lost }); err != lost || count(first, trace.Sync) != 1 {
		t.Errorf("Sync returns %v, %d waits", err, count(first, trace.Sync))
	}
	leave(t, p, 1000)
	p.Reclaim(pool.StepCollect)
	p.SetTrace(second)
	p.Reclaim(pool.StepCollect)
	p.Reclaim(pool.StepCollect)
	p.SetTrace(nil)
	p.Reclaim(pool.StepCollect)
	if a, b := count(first, trace.Cycle), count(second, trace.Cycle); a == 0 || b <= a {
		t.Errorf("%d and %d cycles were recorded, want one and two", a, b)
	}
	c := never(t)
	q := open(t, pool.Config{Collector: c, Trace: third})
	q.SetTrace(third)
	leave(t, q, 1000)
	if c.Collect(policy.TriggerExplicit); count(third, trace.Cycle) != 0 || (c.Stats() == gc.Stats{}) {
		t.Error("the events of a collector that was given")
	}
}

// TestBadFrees: each is a panic that says which it is, and changes nothing.
func TestBadFrees(t *testing.T) {
	p := open(t, pool.Config{Upstream: newDevice(1 << 30)})
	b := alloc(t, p, 1)
	moved := b
	moved.Addr++
	for name, bad := range map[string]pool.Block{"moved": moved, "never": {Addr: 512}, "of another": alloc(t, fullPool(t, 9000), 1)} {
		if text := panicked(func() { p.Free(bad) }); !strings.Contains(text, "not of this pool") {
			t.Errorf("%s: %q", name, text)
		}
	}
	p.Free(b)
	if text := panicked(func() { p.Free(b) }); !strings.HasPrefix(text, "pool: double free, or a block of another pool: 1 B at 0x") {
		t.Errorf("%q", text)
	}
	if s := p.Stats(); s.Live != 0 || s.Frees != 1 {
		t.Errorf("%+v", s)
	}
	if m := p.Memory(pool.Block{Addr: b.Addr, Bytes: 1}); m != nil || p.Space() != pressure.Host || open(t, pool.Config{}).Upstream() != pool.Upstream(pool.Host{}) {
		t.Error("memory of no block, or another configuration than that given")
	}
	if err := (pool.Host{}).Release(b.Addr+1, 512, 0); err == nil || !strings.Contains(err.Error(), "pool: munmap of 512 B: ") {
		t.Error(err)
	}
	over := int64(1<<32 + 4096) // on a system of 32 bits, where it does not fit, a size that is cut would give 4096 bytes
	if addr, err := (pool.Host{}).Allocate(over, 0); err == nil {
		m := at(addr, over)
		m[len(m)-1] = 1
		pool.Host{}.Release(addr, over, 0)
	} else if bits.UintSize == 64 {
		t.Error(err)
	}
	if _, err := (pool.Host{}).Allocate(1<<46, 0); err == nil || !strings.HasPrefix(err.Error(), "pool: mmap of 64.00 TiB: ") {
		t.Error(err)
	}
}

// fullPool returns a pool whose next block has a number beyond those of a new pool.
func fullPool(t *testing.T, blocks int) *pool.Pool {
	p, err := pool.New(pool.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range blocks {
		alloc(t, p, 1)
	}
	return p
}
