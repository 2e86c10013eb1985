package pool_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pressure"
)

type fenceOnly struct{ pool.Host }

func (fenceOnly) Fence(uint32) (pool.Fence, error) { return nil, nil }

func percent(x float64) pressure.Limit { return pressure.Limit{Percent: x} }

func soft(bytes int64) pressure.Limits { return pressure.Limits{Soft: pressure.Limit{Bytes: bytes}} }

// TestConfigurationsThatAreRefused, and those beside them that are not.
func TestConfigurationsThatAreRefused(t *testing.T) {
	mute := newDevice(mib)
	mute.lost = errors.New("it does not say")
	of := func(granule int64) pool.Upstream { return newChunked(mib, granule) }
	for _, c := range []struct {
		cfg  pool.Config
		want string // in the error; none: it is taken
	}{
		{pool.Config{Sites: pool.SitesByLimit - 1}, "Sites is -2 bytes: want 0 to 70368744177664, or SitesByLimit"},
		{pool.Config{Sites: pool.MaxBytes + 1}, "Sites is 70368744177665 bytes"},
		{pool.Config{Sites: pool.MaxBytes}, ""},
		{pool.Config{Upstream: fenceOnly{}}, "is a Fencer but no Synchronizer"},
		{pool.Config{Limits: hard(-1)}, "limit of -1 bytes or 0 %"},
		{pool.Config{Limits: soft(-2)}, "limit of -2 bytes"},
		{pool.Config{Limits: pressure.Limits{Soft: percent(101)}}, "or 101 %"},
		{pool.Config{Limits: pressure.Limits{Hard: percent(-1)}}, "or -1 %"},
		{pool.Config{Limits: pressure.Limits{Hard: percent(math.NaN())}}, "or NaN %"},
		{pool.Config{Upstream: newDevice(1000), Limits: pressure.Limits{Hard: percent(100)}}, ""},
		{pool.Config{Upstream: mute, Limits: pressure.Limits{Hard: percent(50)}}, "a limit in percent needs the total of the space: it does not say"},
		{pool.Config{Upstream: mute, Limits: pressure.Limits{Soft: percent(50)}}, "needs the total"},
		{pool.Config{Upstream: mute, Limits: soft(mib)}, ""},
		{pool.Config{Upstream: newDevice(0), Limits: pressure.Limits{Hard: percent(50)}}, "pool: "},
		{pool.Config{Direct: true, Limits: soft(mib)}, "a pool that is Direct caches nothing"},
		{pool.Config{Upstream: of(256)}, "granule of 256 bytes: want a power of two, 512 or more"},
		{pool.Config{Upstream: of(1536)}, "granule of 1536 bytes"},
		{pool.Config{Upstream: of(512)}, ""},
		{pool.Config{Upstream: of(13)}, "contained panic: no granule"},
		{pool.Config{Upstream: of(256), Direct: true}, ""},
	} {
		c.cfg.Warn = func(error) {}
		p, err := pool.New(c.cfg)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
		if err == nil {
			p.Close()
		}
	}
}

// TestLimitsAreMergedOneByOne: the environment completes the configuration, for the space that the upstream names.
func TestLimitsAreMergedOneByOne(t *testing.T) {
	for name, value := range map[string]string{"HARD": "64MiB", "DEVICE1_HARD": "32MiB", "PINNED_SOFT": "1MiB", "DEVICE3_SOFT": "1MiB", "HOST_HARD": "plenty"} {
		t.Setenv("EAGERGC_"+name+"_MEMORY_LIMIT", value)
	}
	plain := newDevice(100 * mib)
	for _, c := range []struct {
		upstream   pool.Upstream
		space      pressure.Space
		set        pressure.Limits
		soft, hard int64
	}{
		{plain, pressure.Device(0), soft(8 * mib), 8 * mib, 64 * mib},
		{plain, pressure.Device(1), soft(8 * mib), 8 * mib, 32 * mib},
		{plain, pressure.Device(1), hard(16 * mib), 0, 16 * mib},
		{plain, pressure.Device(1), pressure.Limits{Soft: percent(2), Hard: percent(25)}, 2 * mib, 25 * mib},
		{plain, pressure.Host, pressure.Limits{}, 0, 0},
		{plain, pressure.Pinned, pressure.Limits{}, mib, 0},
		{sharer{plain, pressure.Device(1)}, pressure.Managed, pressure.Limits{}, 0, 32 * mib},
	} {
		p := open(t, pool.Config{Upstream: c.upstream, Space: c.space, Limits: c.set})
		if soft, hard := p.Limits(); soft != c.soft || hard != c.hard {
			t.Errorf("%v with %v: limits %d and %d, want %d and %d", c.space, c.set, soft, hard, c.soft, c.hard)
		}
		p.Close()
	}
	direct := open(t, pool.Config{Upstream: plain, Space: pressure.Device(3), Direct: true})
	if soft, _ := direct.Limits(); soft != 0 || direct.SetLimits(pressure.Limits{Soft: percent(1)}) == nil {
		t.Error("where nothing is cached a soft limit is obeyed")
	}
	info, err := pool.Host{}.Info()
	if p := open(t, pool.Config{Limits: pressure.Limits{Hard: percent(50)}}); err == nil && p.Sample().Limit != info.Total/2 {
		t.Errorf("half of %d is %d", info.Total, p.Sample().Limit)
	}
}

// TestLimitsWhilePoolsComeAndGo: what a program sets stays, a pool's own limit comes and goes with it, and
// where no program says anything, the environment does.
func TestLimitsWhilePoolsComeAndGo(t *testing.T) {
	t.Setenv("EAGERGC_HARD_MEMORY_LIMIT", "64MiB")
	d := newDevice(1000 * mib)
	with := func(bytes int64) *pool.Pool {
		return open(t, pool.Config{Upstream: sharer{d, pressure.Device(200)}, Space: pressure.Managed, Limits: hard(bytes)})
	}
	a := open(t, pool.Config{Upstream: sharer{d, pressure.Device(200)}, Space: pressure.Device(200)})
	var b, c *pool.Pool
	for _, step := range []struct {
		when string
		do   func()
		mib  int64
	}{
		{"the environment's", nothing, 64},
		{"the program's before the environment's", func() { b = with(100 * mib) }, 100},
		{"the environment's again", func() { b.Close() }, 64},
		{"set", func() { a.SetLimits(hard(500 * mib)) }, 500},
		{"another pool comes", func() { b = with(0) }, 500},
		{"one with a limit of its own", func() { c = with(200 * mib) }, 200},
		{"that one is gone", func() { c.Close() }, 500},
		{"set for all", func() { b.SetLimits(hard(300 * mib)) }, 300},
		{"what was set stays when the pool goes that set it", func() { b.Close() }, 300},
		{"it may be none", func() { a.SetLimits(pressure.Limits{}) }, 0},
		{"all were closed", func() { a.Close(); a = with(0) }, 64},
	} {
		if step.do(); d.used > 200*mib && step.mib == 200 {
			t.Errorf("%s: %d bytes are reserved", step.when, d.used)
		}
		if _, hard := a.Limits(); hard != step.mib*mib {
			t.Errorf("%s: %v, want %d MiB", step.when, pressure.Bytes(hard), step.mib)
		}
		if step.mib > 0 {
			x := alloc(t, a, (step.mib-2)*mib)
			if _, err := a.Alloc(4*mib, 0); !errors.Is(err, pool.ErrOutOfMemory) {
				t.Errorf("%s: more than the limit: %v", step.when, err)
			}
			a.Free(x)
		}
	}
}

type byValue struct{ pool.Host }

// TestWhoSharesMemory: upstreams that say so, by the space they name, or one upstream that is a pointer to what lies on a device.
// A limit that is set for one is that of those.
func TestWhoSharesMemory(t *testing.T) {
	u, v, nine := newDevice(1<<30), newDevice(1<<20), pressure.Device(9)
	pools := map[string]*pool.Pool{}
	for name, cfg := range map[string]pool.Config{
		"a": {Upstream: u, Space: nine}, "a2": {Upstream: u, Space: nine}, "b": {Upstream: v, Space: nine}, "host": {Upstream: u}, "value": {Upstream: byValue{}, Space: nine},
		"value2": {Upstream: byValue{}, Space: nine}, "c": {Upstream: sharer{u, nine}, Space: pressure.Managed}, "c2": {Upstream: sharer{v, nine}, Space: nine},
		"d": {Upstream: sharer{u, pressure.Device(8)}, Space: nine},
	} {
		pools[name] = open(t, cfg)
	}
	n := int64(0)
	for a, p := range pools {
		n += mib
		if err := p.SetLimits(hard(n)); err != nil {
			t.Fatal(err)
		}
		for b, q := range pools {
			want := a == b || a[:1] == b[:1] && len(a) <= 2 && len(b) <= 2
			if _, hard := q.Limits(); (hard == n) != want {
				t.Errorf("%s and %s share: %v", a, b, !want)
			}
		}
	}
}

// TestTheBudgetOfADevice is what its oldest open pool says.
func TestTheBudgetOfADevice(t *testing.T) {
	space := pressure.Device(11)
	first := open(t, pool.Config{Upstream: sharer{newDevice(1000 * mib), space}, Space: space})
	second := open(t, pool.Config{Upstream: sharer{newDevice(500 * mib), space}, Space: space})
	if n := second.Sample().Limit; n != 1000*mib {
		t.Errorf("the budget is %d, want that which the oldest says", n)
	}
	first.Close()
	if n := second.Sample().Limit; n != 500*mib {
		t.Errorf("the budget is %d, want that which the one says that is left", n)
	}
}

// TestABudgetHoldsForTenSeconds, and goes on with what it knows where the device does not answer (CUDA.jl#2795). A wait asks for it where no limit is set.
func TestABudgetHoldsForTenSeconds(t *testing.T) {
	d, told := newDevice(100*mib), 0
	p := open(t, pool.Config{Upstream: d, Space: pressure.Device(0), Warn: func(error) { told++ }})
	for _, c := range []struct {
		seconds time.Duration // since the row before
		total   int64         // that the device says, in MiB
		silent  bool
		soft    int64 // limit, in MiB
		want    int64
	}{{0, 100, false, 0, 100}, {8, 500, false, 0, 100}, {10, 500, false, 0, 500}, {10, 700, true, 0, 500}, {10, 700, true, 0, 500}, {10, 600, false, 0, 600}, {0, 700, false, 30, 30}, {10, 700, true, 30, 30}, {0, 800, false, 0, 800}} {
		d.total, d.lost = c.total*mib, nil
		if c.silent {
			d.lost = errors.New("no answer")
		}
		p.Later(c.seconds * time.Second)
		if soft, _ := p.Limits(); soft != c.soft*mib {
			p.SetLimits(pressure.Limits{Soft: pressure.Limit{Bytes: c.soft * mib}})
		}
		if err := p.Sync(nil, func() error { return nil }); err != nil || p.Sample().Limit != c.want*mib {
			t.Errorf("%+v: %d MiB, %v", c, p.Sample().Limit/mib, err)
		}
	}
	if n := p.Stats().Limits.Budget; told != 1 || n != 800*mib {
		t.Errorf("told %d times of one row of failures; the budget is %d", told, n)
	}
}

// A witness keeps what a policy is told.
type witness struct {
	points []policy.Point
	cycles []policy.Cycle
}

func (w *witness) Decide(p policy.Point) policy.Decision {
	w.points = append(w.points, p)
	return policy.Decision{Reason: "looks"}
}
func (w *witness) Observe(c policy.Cycle) { w.cycles = append(w.cycles, c) }
func (*witness) String() string           { return "witness" }

// TestWhatThePolicyIsTold: at allocations and syncs live bytes, limit and request of the whole device, and of a cycle what did not fit.
func TestWhatThePolicyIsTold(t *testing.T) {
	w := new(witness)
	c, err := gc.New(gc.Config{Policy: w, Idle: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := pool.Config{Upstream: newDevice(100 * mib), Space: pressure.Device(0), Collector: c, Limits: hard(120 * mib), ExactPeaks: true}
	a, b := open(t, cfg), open(t, cfg)
	x, y := alloc(t, a, 1000), alloc(t, a, 40*mib)
	z := alloc(t, b, 20*mib) // where live is that of b alone
	if err := a.Sync(nil, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := []policy.Point{{Request: 1024}, {Request: 40 * mib, Sample: pressure.Sample{Live: 1024}}, {Request: 20 * mib}, {At: policy.Sync, Sample: pressure.Sample{Live: 60*mib + 1024}}}
	for i, p := range w.points {
		if len(w.points) != len(want) || p.Request != want[i].Request || p.At != want[i].At || p.Sample.Live != want[i].Sample.Live || p.Sample.Limit != 120*mib || p.Sample.Space != pressure.Device(0) {
			t.Errorf("point %d: %+v, want %+v", i, p, want[i])
		}
	}
	c.Collect(policy.TriggerExplicit)
	if _, err := a.Alloc(50*mib, 0); err == nil {
		t.Error("more than there is was handed out")
	}
	c.Collect(policy.TriggerExplicit)
	var triggers []policy.Trigger
	for _, c := range w.cycles {
		if want := map[policy.Trigger]int64{policy.TriggerRefusal: 110*mib + 1024}[c.Trigger]; c.Wanted != want {
			t.Errorf("told of %+v, want 110 MiB in the ladder's alone", c)
		}
		if c.Trigger != policy.TriggerNatural { // the runtime may collect, too
			triggers = append(triggers, c.Trigger)
		}
	}
	if want := []policy.Trigger{policy.TriggerExplicit, policy.TriggerRefusal, policy.TriggerExplicit}; !slices.Equal(slices.Compact(triggers), want) {
		t.Errorf("told of cycles by %v, want %v", triggers, want)
	}
	a.Free(x)
	a.Free(y)
	b.Free(z)
	b.Free(alloc(t, b, 5*mib))
	b.Close()
	a.Sync(nil, func() error { return nil })
	if p := w.points[len(w.points)-1]; p.Allocated != 5*mib || p.Sample.Live != 0 {
		t.Errorf("after a pool of the device was closed: %+v, want 5 MiB allocated since the last cycle", p)
	}
	a.Close()
	d := open(t, cfg) // of the same device, which had no pool for a moment
	before := len(w.points)
	d.Free(alloc(t, d, 30*mib))
	if n := len(w.points); n == before || w.points[n-1].Request != 30*mib {
		t.Errorf("of a pool that was made after the last one was closed: told %+v", w.points[before:])
	}
	d.Close()
}
