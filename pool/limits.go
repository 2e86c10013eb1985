package pool

import (
	"errors"
	"fmt"
	"slices"

	"github.com/eagergc/eagergc/pressure"
)

// The limits of a group are the smallest that its pools were made with or that SetLimits has set.
// Without these, the limits of the environment count.

var errDirectSoft = errors.New("pool: a soft limit bounds what is cached, and a pool that is Direct caches nothing")

// inBytes turns shares of the total into bytes. A share of an unknown total is an error, and so is
// a soft limit where nothing is cached.
func (p *Pool) inBytes(limits pressure.Limits) (pressure.Limits, error) {
	if p.cfg.Direct && p.upstream.cacher == nil && limits.Soft != (pressure.Limit{}) {
		return limits, errDirectSoft
	}
	for _, l := range []pressure.Limit{limits.Soft, limits.Hard} {
		if l.Bytes < 0 || !(l.Percent >= 0 && l.Percent <= 100) {
			return limits, fmt.Errorf("pool: limit of %d bytes or %v %%: want 0 or more, and at most 100 %%", l.Bytes, l.Percent)
		}
	}
	var info pressure.Info
	if limits.Soft.Percent != 0 || limits.Hard.Percent != 0 {
		var err error
		if info, err = p.upstreamInfo(); err != nil {
			return limits, fmt.Errorf("pool: a limit in percent needs the total of the space: %w", err)
		}
	}
	limits, err := limits.Of(info.Total)
	if err != nil {
		return limits, fmt.Errorf("pool: %w", err)
	}
	return limits, nil
}

// Limits returns the limits in bytes; 0 means no limit.
func (p *Pool) Limits() (soft, hard int64) { return p.group.soft.Load(), p.group.hard.Load() }

// SetLimits replaces both limits; a zero limit means no limit. They change for all pools of the
// device (see [Sharer]). Until all these pools are closed, they go before the limits that pools
// were made with and before those of the environment.
//
// The new limits may be below the reserved bytes. Then cached memory goes back to the upstream, and
// nothing new is reserved until enough of the rest is freed. SetLimits fails, and changes nothing,
// if a limit is a share of an unknown total. It also fails for a soft limit of a pool that is
// Direct over an upstream that caches nothing.
func (p *Pool) SetLimits(limits pressure.Limits) error {
	limits, err := p.inBytes(limits)
	if err != nil {
		return err
	}
	p.group.change(func(list []*Pool) []*Pool {
		p.group.set = &limits
		for _, q := range list {
			q.own = pressure.Limits{}
		}
		return list
	})
	return nil
}

// change changes the list of pools, or what their limits come from, and has the limits hold.
func (g *group) change(do func([]*Pool) []*Pool) {
	g.mu.Lock()
	list := do(slices.Clone(g.members()))
	g.pools.Store(&list)
	if len(list) > 0 {
		g.oldest.Store(list[0])
	} else {
		g.set = nil
	}
	limits := g.limits(list)
	changed := g.soft.Swap(limits.Soft.Bytes) != limits.Soft.Bytes
	changed = g.hard.Swap(limits.Hard.Bytes) != limits.Hard.Bytes || changed
	g.asked.Store(-1)
	for _, gate := range g.gates {
		gate.Changed()
	}
	g.mu.Unlock()
	if len(list) == 0 {
		return
	}
	g.estimate()
	for _, p := range list {
		if changed {
			p.fitLimits()
		}
	}
}

// limits returns those of the pools in list, in bytes. The caller holds mu.
func (g *group) limits(list []*Pool) pressure.Limits {
	var own, env pressure.Limits
	if g.set != nil {
		own = *g.set
	}
	for _, p := range list {
		own, env = tighter(own, p.own), tighter(env, p.env)
	}
	if own.Soft.Bytes == 0 && g.set == nil {
		own.Soft = env.Soft
	}
	if own.Hard.Bytes == 0 && g.set == nil {
		own.Hard = env.Hard
	}
	return own
}

// tighter returns the smaller of each two limits in bytes; 0 means no limit.
func tighter(a, b pressure.Limits) pressure.Limits {
	least := func(a, b pressure.Limit) pressure.Limit {
		if a.Bytes == 0 || b.Bytes > 0 && b.Bytes < a.Bytes {
			return b
		}
		return a
	}
	return pressure.Limits{Soft: least(a.Soft, b.Soft), Hard: least(a.Hard, b.Hard)}
}

// fitLimits gives cached memory back that is above the limits.
func (p *Pool) fitLimits() {
	p.sizeCaches(p.group.hard.Load())
	p.keepUpstream()
	if over := -p.headroom(); over > 0 {
		p.flush()
		p.giveBack(over)
	}
	p.trimToSoft()
}

// headroom returns how many bytes may still be reserved; it is negative after a limit has fallen.
func (p *Pool) headroom() int64 {
	hard := p.group.hard.Load()
	if hard == 0 {
		return MaxBytes
	}
	return p.tracker.Headroom(hard)
}

// sizeCaches sets how much the caches may keep under a hard limit, and empties them.
func (p *Pool) sizeCaches(hard int64) {
	keep, slack := int64(keepMax), int64(slackMax)
	if n := int64(len(p.caches.all)); hard > 0 {
		keep = min(keep, hard/n)
		slack = min(slack, hard/(64*n))
	}
	if p.cfg.ExactPeaks {
		slack = 0
	}
	p.eachCache(func(f *cache) {
		f.flush(&p.core)
		f.keep, f.count.Slack = keep, slack
	})
}
