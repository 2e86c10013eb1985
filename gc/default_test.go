package gc

import (
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/eagergc/eagergc/gc/policy"
	"github.com/eagergc/eagergc/pressure"
)

// A place is a source in a space of its own.
type place struct{ space pressure.Space }

func (p place) Sample() pressure.Sample { return pressure.Sample{Space: p.space} }
func (place) Allocated() int64          { return 0 }

// Memory of the host goes with a price, a device's up to its limit, unless somebody has chosen.
func TestDefaultPolicyIsOfTheSpace(t *testing.T) {
	chosen := func() policy.Policy { return policy.MustParse("growth:1").New() }
	for _, test := range []struct {
		name   string
		policy policy.Policy
		spaces []pressure.Space
		want   string
	}{
		{"host", nil, []pressure.Space{pressure.Host}, HostPolicy},
		{"device", nil, []pressure.Space{pressure.Device(0)}, DefaultPolicy},
		{"both", nil, []pressure.Space{pressure.Host, pressure.Device(1)}, DefaultPolicy},
		{"chosen", chosen(), []pressure.Space{pressure.Device(0)}, chosen().String()},
	} {
		c := embed(t, Config{Policy: test.policy})
		for _, s := range test.spaces {
			c.NewGate(place{s})
		}
		if got := c.Policy(); got != policy.MustParse(test.want).New().String() {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	c := embed(t, Config{})
	c.SetPolicy(chosen())
	if c.NewGate(place{pressure.Device(0)}); c.Policy() != chosen().String() {
		t.Errorf("set: %s", c.Policy())
	}
}

// TestTheLimitOfDefault is that of the environment, the hard one before the soft one; else nine tenths of what there is.
func TestTheLimitOfDefault(t *testing.T) {
	info, err := pressure.HostMemory()
	if err != nil {
		t.Skip(err)
	}
	share := int64(0.9 * float64(info.Total))
	for _, test := range []struct {
		hard, soft string
		want       int64
	}{
		{"", "", share}, {"5000", "", 5000}, {"", "3000", 3000}, {"5000", "3000", 5000}, {"none", "", 0},
		{"50%", "", info.Total / 2}, {"4Eg", "", share}, {"1000TiB", "", info.Total}, // no more than there is
	} {
		t.Setenv("EAGERGC_HOST_HARD_MEMORY_LIMIT", test.hard)
		t.Setenv("EAGERGC_HOST_SOFT_MEMORY_LIMIT", test.soft)
		if got := defaultLimit(); got != test.want {
			t.Errorf("hard %q, soft %q: %d, want %d", test.hard, test.soft, got, test.want)
		}
	}
	c := newDefault()
	defer c.Close()
	if c.Policy() != policy.MustParse(HostPolicy).New().String() || c.throttle.Caps != usualCaps() || c.own().limit.Load() != info.Total || c.listening == nil || !c.own().gate.soft {
		t.Errorf("the default's policy is %s, its limit %d, its caps %+v", c.Policy(), c.own().limit.Load(), c.throttle.Caps)
	}
	if c.NewGate(place{pressure.Device(0)}); c.Policy() != policy.MustParse(HostPolicy).New().String() {
		t.Errorf("the default's policy becomes %s", c.Policy())
	}
}

// TestMisuseIsSaidAloud: to Config.Log or, where there is none, to the program's.
func TestMisuseIsSaidAloud(t *testing.T) {
	info, err := pressure.HostMemory()
	if err != nil {
		t.Skip(err)
	}
	before := slog.Default()
	defer slog.SetDefault(before)
	for _, test := range []struct {
		limit int64
		own   bool
		said  int
	}{{0, false, 0}, {info.Total, false, 0}, {info.Total + 1, false, 1}, {info.Total + 1, true, 1}} {
		all, own := &events{level: slog.LevelWarn}, &events{level: slog.LevelWarn}
		slog.SetDefault(slog.New(all))
		cfg, log, other := Config{Limit: test.limit}, all, own
		if test.own {
			cfg.Log, log, other = slog.New(own), own, all
		}
		embed(t, cfg)
		got := log.of(logLimit, "")
		if len(got) != test.said || other.count() > 0 {
			t.Errorf("a limit of %d, log %v: said %+v and, to the other, %+v", test.limit, test.own, got, other.all)
		} else if test.said > 0 && (got[0].level != slog.LevelWarn || !got[0].has(map[string]any{"limit_bytes": test.limit, "total_bytes": info.Total})) {
			t.Errorf("said %+v", got)
		}
	}
}

// TestBytesAreBounded: MaxBytes is fine, and one more is not.
func TestBytesAreBounded(t *testing.T) {
	c := newCollector(t, Config{Policy: policy.Spec{}.New(), Limit: MaxBytes})
	owner := new(thing)
	h := ownFunc(c, owner, MaxBytes, func() {})
	if live := c.own().live.Load(); live != MaxBytes || !h.Resize(0) || !h.Resize(MaxBytes) {
		t.Errorf("%d live", live)
	}
	h.Release()
	c.SetLimit(0)
	c.SetLimit(MaxBytes)
	c.Account(0)
	c.Account(MaxBytes)
	c.Account(-MaxBytes)
	c.Account(3)
	mustPanic(t, "gc: Account takes back 5 bytes, where only 3 are counted", func() { c.Account(-5) })
	c.Account(-3) // which has left them
	r := NewWeakRegistry(c.own().gate, 0, func(Slot, int, int64) {})
	defer r.Close()
	for _, do := range []func(){
		func() { c.Account(-MaxBytes - 1) }, func() { c.Account(MaxBytes + 1) }, func() { c.SetLimit(MaxBytes + 1) },
		func() { Track(r, owner, MaxBytes+1, 0) }, func() { Count(c, owner, MaxBytes+1) },
	} {
		mustPanic(t, "want 0 to 70368744177664 (64.00 TiB)", do)
	}
	if _, err := New(Config{Limit: MaxBytes + 1}); err == nil || err.Error() != "gc: a limit of 70368744177665 bytes: want 0 to 70368744177664" {
		t.Error(err)
	}
}

// TestTheZeroCapsAreFilledIn, each with its own default, and bounds are checked one by one.
func TestTheZeroCapsAreFilledIn(t *testing.T) {
	usual := Caps{Cycles: 0.25, Gauges: 100, Held: 0.05, Assist: 10 * ms}
	given := Caps{Cycles: 1, Gauges: 0.5, Held: 1, Assist: -1}
	for got, want := range map[Caps]Caps{
		{}: usual, given: given, {Cycles: 0.5}: {0.5, 100, 0.05, 10 * ms}, {Gauges: math.Inf(1)}: {0.25, math.Inf(1), 0.05, 10 * ms},
		{Held: 0.5}: {0.25, 100, 0.5, 10 * ms}, {Assist: ms}: {0.25, 100, 0.05, ms},
	} {
		was := got
		if err := got.check(); err != nil || got != want {
			t.Errorf("%+v becomes %+v: %v", was, got, err)
		}
	}
	for caps, text := range map[Caps]string{
		{Cycles: 1.01}:   "gc: Caps.Cycles is 1.01 and Caps.Held 0: want shares from 0 to 1",
		{Cycles: -0.01}:  "gc: Caps.Cycles is -0.01 and Caps.Held 0: want shares from 0 to 1",
		{Held: 1.01}:     "gc: Caps.Cycles is 0 and Caps.Held 1.01: want shares from 0 to 1",
		{Held: -0.01}:    "gc: Caps.Cycles is 0 and Caps.Held -0.01: want shares from 0 to 1",
		{Gauges: -0.001}: "gc: Caps.Gauges is -0.001: want cycles a second, 0 or more",
	} {
		if err := caps.check(); err == nil || err.Error() != text {
			t.Errorf("%+v: %v", caps, err)
		}
		if _, err := New(Config{Caps: caps}); err == nil {
			t.Errorf("%+v is no error of New", caps)
		}
	}
	if usualCaps() != usual {
		t.Errorf("%+v", usualCaps())
	}
}

// TestAPolicyThatNobodyKnowsIsSaid, and has no effect.
func TestAPolicyThatNobodyKnowsIsSaid(t *testing.T) {
	before := slog.Default()
	log := &events{level: slog.LevelWarn}
	slog.SetDefault(slog.New(log))
	defer slog.SetDefault(before)
	t.Setenv(PolicyVariable, "nobody knows this")
	c := embed(t, Config{})
	if c.Policy() != policy.MustParse(HostPolicy).New().String() || log.count() != 1 || !strings.Contains(log.all[0].text, "nobody knows this") {
		t.Errorf("policy %s, said %+v", c.Policy(), log.all)
	}
}
