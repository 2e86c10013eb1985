package pool_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/array"
	"github.com/eagergc/eagergc/pressure"
)

// A small device has so many bytes for all pools over it.
type small struct {
	*device
	mu    sync.Mutex
	total int64
	used  int64
	peak  int64
}

func newSmall(total int64) *small { return &small{device: newDevice(), total: total} }

func (d *small) Allocate(bytes int64, stream uint32) (uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes > d.total-d.used {
		return 0, errors.New("the device is full")
	}
	addr, err := d.device.Allocate(bytes, stream)
	if err == nil {
		d.used += bytes
		d.peak = max(d.peak, d.used)
	}
	return addr, err
}

func (d *small) Release(addr uintptr, bytes int64, stream uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used -= bytes
	return d.device.Release(addr, bytes, stream)
}

func (d *small) Info() (pressure.Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return pressure.Info{Free: d.total - d.used, Total: d.total}, nil
}

// managed is other memory of the same device.
type managed struct{ *small }

func (managed) Shares() pressure.Space { return pressure.Device(200) }

type shared struct{ *small }

func (shared) Shares() pressure.Space { return pressure.Device(200) }

func open(t *testing.T, cfg pool.Config) *pool.Pool {
	t.Helper()
	p, err := pool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Books(); err != nil && !p.Closed() {
			t.Errorf("at rest: %v", err)
		}
		p.Close()
	})
	return p
}

func hard(bytes int64) pressure.Limits {
	return pressure.Limits{Hard: pressure.Limit{Bytes: bytes}}
}

const mib = 1 << 20

// Reclaiming by hand is never needed: what one pool of a device caches, another
// one gets, whether the device or a limit is full.
func TestPoolsOfADeviceMakeRoomForEachOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		total  int64
		limits pressure.Limits
	}{{"device full", 64 * mib, pressure.Limits{}}, {"at the limit", 1000 * mib, hard(64 * mib)}} {
		t.Run(c.name, func(t *testing.T) {
			d := newSmall(c.total)
			a := open(t, pool.Config{Upstream: shared{d}, Space: pressure.Device(0), Limits: c.limits})
			b := open(t, pool.Config{Upstream: managed{d}, Space: pressure.Managed, Limits: c.limits})
			x, err := a.Alloc(60*mib, 0)
			if err != nil {
				t.Fatal(err)
			}
			a.Free(x)
			y, err := b.Alloc(32*mib, 0)
			if err != nil {
				t.Fatalf("nothing is live, and 32 of 64 MiB are refused: %v", err)
			}
			if _, err := a.Alloc(60*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
				t.Errorf("92 of 64 MiB: %v", err)
			}
			b.Free(y)
			x, err = a.Alloc(60*mib, 0)
			if err != nil {
				t.Fatal(err)
			}
			a.Free(x)
		})
	}
}

// A refusal collects the garbage of every pool of the device, whoever's
// collector has to find it.
func TestGarbageOfOnePoolServesAnother(t *testing.T) {
	for _, one := range []bool{true, false} {
		d := newSmall(64 * mib)
		c, err := gc.New(gc.Config{Policy: policy.Spec{}.New()})
		if err != nil {
			t.Fatal(err)
		}
		cfg := pool.Config{Upstream: d, Space: pressure.Device(0)}
		if one {
			cfg.Collector = c
		}
		a, b := open(t, cfg), open(t, cfg)
		for range 15 {
			if _, err := array.New[byte](a, 4*mib); err != nil {
				t.Fatal(err)
			}
		}
		y, err := array.New[byte](b, 32*mib)
		if err != nil {
			t.Errorf("one collector %v: all is garbage, and 32 of 64 MiB are refused: %v", one, err)
		}
		y.Free()
		a.Close()
		b.Close()
		c.Close()
	}
}

// The pressure that a policy sees is that of the device.
func TestPressureIsTheDevices(t *testing.T) {
	var seen []pressure.Sample
	c, err := gc.New(gc.Config{Policy: &sampling{&seen}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d := newSmall(100 * mib)
	cfg := pool.Config{Upstream: d, Space: pressure.Device(0), Collector: c, Limits: hard(100 * mib)}
	a, b := open(t, cfg), open(t, cfg)
	x, _ := a.Alloc(40*mib, 0)
	y, _ := b.Alloc(40*mib, 0)
	if err := c.Sync(nil, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if s := seen[len(seen)-1]; s.Live != 80*mib || s.Limit != 100*mib {
		t.Errorf("the policy saw %+v, want 80 of 100 MiB", s)
	}
	a.Free(x)
	b.Free(y)
	a.Close()
	b.Close()
}

// TestThePolicyIsToldWhatDidNotFit: the device has less than the limit says.
func TestThePolicyIsToldWhatDidNotFit(t *testing.T) {
	var cycles []policy.Cycle
	c, err := gc.New(gc.Config{Policy: &told{policy.Spec{}.New(), &cycles}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := open(t, pool.Config{Upstream: newSmall(100 * mib), Space: pressure.Device(0), Collector: c, Limits: hard(100 * mib)})
	x, _ := p.Alloc(60*mib, 0)
	c.Collect(policy.TriggerExplicit)
	if _, err := p.Alloc(50*mib, 0); err == nil {
		t.Error("more than there is was handed out")
	}
	c.Collect(policy.TriggerExplicit)
	if n := len(cycles); n < 3 || cycles[0].Wanted != 0 || cycles[1].Wanted != 110*mib || cycles[1].Trigger != policy.TriggerRefusal || cycles[n-1].Wanted != 0 {
		t.Errorf("told of %+v, want 110 MiB in the ladder's alone", cycles)
	}
	p.Free(x)
}

type told struct {
	policy.Policy
	cycles *[]policy.Cycle
}

func (o *told) Observe(c policy.Cycle) { *o.cycles = append(*o.cycles, c) }

type sampling struct{ seen *[]pressure.Sample }

func (s *sampling) Decide(p policy.Point) policy.Decision {
	*s.seen = append(*s.seen, p.Sample)
	return policy.Decision{Reason: "looks"}
}
func (*sampling) Observe(policy.Cycle) {}
func (*sampling) String() string       { return "sampling" }

// Limits are those of the device: shares of it, and those that only one pool names.
func TestLimitsBelongToDevices(t *testing.T) {
	half := pressure.Limits{Hard: pressure.Limit{Percent: 50}}
	for _, limits := range [][2]pressure.Limits{{half, half}, {half, {}}, {{}, half}, {half, hard(90 * mib)}} {
		d := newSmall(100 * mib)
		a := open(t, pool.Config{Upstream: d, Space: pressure.Device(0), Limits: limits[0]})
		b := open(t, pool.Config{Upstream: d, Space: pressure.Device(0), Limits: limits[1]})
		for _, p := range []*pool.Pool{a, b, a, b} {
			for {
				if _, err := p.Alloc(3*mib, 0); err != nil {
					break
				}
			}
		}
		if d.peak > 50*mib || d.peak < 40*mib {
			t.Errorf("limits %v: two pools took %v of a device of 100 MiB", limits, pressure.Bytes(d.peak))
		}
	}
}

// The environment completes the limits of the configuration one by one.
func TestLimitsAreMergedOneByOne(t *testing.T) {
	t.Setenv("EAGERGC_HARD_MEMORY_LIMIT", "64MiB")
	t.Setenv("EAGERGC_DEVICE1_HARD_MEMORY_LIMIT", "32MiB")
	t.Setenv("EAGERGC_PINNED_SOFT_MEMORY_LIMIT", "1MiB")
	for _, c := range []struct {
		space      pressure.Space
		set        pressure.Limits
		soft, hard int64
	}{
		{pressure.Device(0), pressure.Limits{Soft: pressure.Limit{Bytes: 8 * mib}}, 8 * mib, 64 * mib},
		{pressure.Device(1), pressure.Limits{Soft: pressure.Limit{Bytes: 8 * mib}}, 8 * mib, 32 * mib},
		{pressure.Device(1), hard(16 * mib), 0, 16 * mib},
		{pressure.Host, pressure.Limits{}, 0, 0},
		{pressure.Pinned, pressure.Limits{}, mib, 0},
	} {
		p := open(t, pool.Config{Upstream: newSmall(100 * mib), Space: c.space, Limits: c.set})
		if soft, hard := p.Limits(); soft != c.soft || hard != c.hard {
			t.Errorf("%v with %v: limits %d and %d, want %d and %d", c.space, c.set, soft, hard, c.soft, c.hard)
		}
	}
}

// Where nothing is cached a soft limit is refused, but for that of the environment, which counts as not set.
func TestDirectRefusesASoftLimit(t *testing.T) {
	soft := pressure.Limits{Soft: pressure.Limit{Bytes: mib}}
	direct := pool.Config{Upstream: newSmall(100 * mib), Space: pressure.Device(0), Direct: true}
	if err := open(t, direct).SetLimits(soft); err == nil {
		t.Error("SetLimits takes it")
	}
	t.Setenv("EAGERGC_DEVICE0_SOFT_MEMORY_LIMIT", "1MiB")
	if soft, _ := open(t, direct).Limits(); soft != 0 {
		t.Error("New takes that of the environment")
	}
	t.Setenv("EAGERGC_DEVICE0_SOFT_MEMORY_LIMIT", "")
	direct.Limits = soft
	if _, err := pool.New(direct); err == nil {
		t.Error("New takes it")
	}
}

// What a program sets stays set, whichever pools come and go; a pool's own limit
// comes and goes with it, and what is cached above it goes back at once; where no
// program says anything, the environment does.
func TestLimitsWhilePoolsComeAndGo(t *testing.T) {
	t.Setenv("EAGERGC_HARD_MEMORY_LIMIT", "64MiB")
	d := newSmall(1000 * mib)
	cfg := pool.Config{Upstream: shared{d}, Space: pressure.Device(200)}
	with := func(bytes int64) pool.Config {
		c := cfg
		c.Upstream, c.Space, c.Limits = managed{d}, pressure.Managed, hard(bytes)
		return c
	}
	a := open(t, cfg)
	want := func(bytes int64, when string) {
		t.Helper()
		if _, hard := a.Limits(); hard != bytes {
			t.Errorf("%s: %v, want %v", when, pressure.Bytes(hard), pressure.Bytes(bytes))
		}
		x, err := a.Alloc(bytes-2*mib, 0)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if _, err := a.Alloc(4*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
			t.Errorf("%s: more than the limit: %v", when, err)
		}
		a.Free(x)
	}
	want(64*mib, "the environment's")
	b := open(t, with(100*mib))
	want(100*mib, "the program's before the environment's")
	b.Close()
	want(64*mib, "the environment's again")
	if err := a.SetLimits(hard(500 * mib)); err != nil {
		t.Fatal(err)
	}
	want(500*mib, "set")
	b = open(t, with(0))
	want(500*mib, "another pool comes")
	c := open(t, with(200*mib))
	if d.used > 200*mib {
		t.Errorf("%v are reserved under a limit of 200 MiB", pressure.Bytes(d.used))
	}
	want(200*mib, "one with a limit of its own")
	c.Close()
	want(500*mib, "that one is gone")
	if err := b.SetLimits(hard(300 * mib)); err != nil {
		t.Fatal(err)
	}
	b.Close()
	want(300*mib, "what was set stays when the pool goes that set it")
	a.Close()
	a = open(t, cfg)
	want(64*mib, "all were closed")
}

// Limits change while a pool works: what is cached goes at once, what is over
// stays until it is freed, and nothing new is reserved meanwhile.
func TestSetLimits(t *testing.T) {
	d := newSmall(1000 * mib)
	cfg := pool.Config{Upstream: d, Space: pressure.Device(0), Limits: hard(100 * mib)}
	a, b := open(t, cfg), open(t, cfg)
	alloc := func(p *pool.Pool, n int64) pool.Block {
		t.Helper()
		x, err := p.Alloc(n, 0)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x, y, z := alloc(a, 30*mib), alloc(b, 30*mib), alloc(b, 30*mib)
	b.Free(z)
	if err := a.SetLimits(hard(40 * mib)); err != nil {
		t.Fatal(err)
	}
	if d.used != 60*mib {
		t.Errorf("%v are reserved, 60 MiB are live", pressure.Bytes(d.used))
	}
	if _, err := b.Alloc(mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
		t.Errorf("over the new limit: %v", err)
	}
	a.Free(x)
	b.Free(alloc(b, 8*mib))
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	if err := b.SetLimits(pressure.Limits{Soft: pressure.Limit{Bytes: 32 * mib}}); err != nil {
		t.Fatal(err)
	}
	if soft, hard := a.Limits(); soft != 32*mib || hard != 0 {
		t.Errorf("limits %d and %d", soft, hard)
	}
	b.Free(alloc(b, 200*mib))
	b.Free(y)
	if err := a.Synchronize(); err != nil || d.used > 32*mib {
		t.Errorf("%v are reserved after a sync point: %v", pressure.Bytes(d.used), err)
	}
	for _, bad := range []pressure.Limits{hard(-1), {Hard: pressure.Limit{Percent: 200}}} {
		if err := a.SetLimits(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

// Pools come and go while others of the device work.
func TestPoolsComeAndGo(t *testing.T) {
	d := newSmall(64 * mib)
	c, err := gc.New(gc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 20 {
				p, err := pool.New(pool.Config{Upstream: d, Space: pressure.Device(0), Collector: c, Limits: hard(48 * mib)})
				if err != nil {
					t.Error(err)
					return
				}
				for range 50 {
					if a, err := array.New[byte](p, 2*mib); err == nil {
						a.Free()
					} else if !errors.Is(err, pool.ErrOutOfMemory) {
						t.Error(err)
					}
				}
				p.Close()
			}
		}()
	}
	wg.Wait()
	if d.used != 0 || d.peak > 48*mib {
		t.Errorf("%v are left, %v were reserved at most", d.used, pressure.Bytes(d.peak))
	}
}
