package pool

import (
	"errors"
	"testing"
	"time"

	"github.com/eagergc/eagergc/pressure"
)

// SlotOf says which sizes and streams share a magazine.
var SlotOf = slotOf

// OneCache leaves the pool one cache, so that what a goroutine frees is where it looks next, whatever its stack is.
func (p *Pool) OneCache() {
	p.flush()
	p.caches.all, p.caches.mask = p.caches.all[:1], 0
	p.sizeCaches(p.hard.Load())
}

// TestABudgetHoldsForTenSeconds, and goes on with what it knows where the space does not answer (CUDA.jl#2795).
func TestABudgetHoldsForTenSeconds(t *testing.T) {
	info, fail, told := pressure.Info{Free: 100, Total: 1000}, error(nil), 0
	b := budget{Info: func() (pressure.Info, error) { return info, fail }, Failed: func(error) { told++ }}
	for _, c := range []struct {
		second         time.Duration
		free, reserved int64
		silent         bool
		limits         pressure.Limits
		want           estimate
	}{
		{0, 100, 50, false, pressure.Limits{}, estimate{Budget: 150}},
		{9, 500, 50, false, pressure.Limits{}, estimate{Budget: 150}},
		{10, 500, 50, false, pressure.Limits{}, estimate{Budget: 550}},
		{20, 500, 70, true, pressure.Limits{}, estimate{Budget: 550}},
		{30, 500, 70, true, pressure.Limits{}, estimate{Budget: 550}},
		{40, 500, 0, false, pressure.Limits{}, estimate{Budget: 500}},
		{41, 0, 0, false, pressure.Limits{Soft: pressure.Limit{Bytes: 300}, Hard: pressure.Limit{Percent: 80}}, estimate{Soft: 300, Hard: 800, Budget: 800}},
		{42, 0, 0, false, pressure.Limits{Soft: pressure.Limit{Percent: 30}}, estimate{Soft: 300, Budget: 300}},
		{43, 70, 7, false, pressure.Limits{}, estimate{Budget: 77}},
	} {
		if info.Free, fail = c.free, nil; c.silent {
			fail = errors.New("no answer")
		}
		if b.Limits != c.limits {
			b.SetLimits(c.limits)
		}
		if got := b.At(c.second*time.Second, c.reserved); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if told != 1 {
		t.Errorf("told %d times of one row of failures", told)
	}
}
