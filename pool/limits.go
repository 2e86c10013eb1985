package pool

import (
	"errors"
	"fmt"

	"github.com/eagergc/eagergc/pressure"
)

var errDirectSoft = errors.New("pool: a soft limit bounds what is cached, and a pool that is Direct caches nothing")

func (p *Pool) cachesNothing() bool { return p.cfg.Direct && p.cacher == nil }

// chooseLimits completes the limits of the configuration by those of the
// environment, one by one.
func (p *Pool) chooseLimits() error {
	if p.cachesNothing() && p.cfg.Limits.Soft != (pressure.Limit{}) {
		return errDirectSoft
	}
	limits, err := p.cfg.Limits.OrFromEnv(p.place(), nil)
	if err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	p.cfg.Limits = limits
	return nil
}

// Limits returns the limits in bytes; 0 is none.
func (p *Pool) Limits() (soft, hard int64) { return p.group.soft.Load(), p.hard.Load() }

// SetLimits replaces the limits, both of them: a zero limit is none. The limits
// are those of the device, so they change for all its pools (see [Sharer]). They
// may fall below what is reserved: cached memory then goes back to the upstream,
// what is over stays until it is freed, and until then nothing new is reserved.
// It fails, and changes nothing, if a limit is a share of an unknown total, and for
// a soft limit of a pool that is Direct over an upstream that caches nothing.
func (p *Pool) SetLimits(limits pressure.Limits) error {
	if p.cachesNothing() && limits.Soft != (pressure.Limit{}) {
		return errDirectSoft
	}
	limits, err := p.inBytes(limits)
	if err != nil {
		return err
	}
	g := p.group
	g.mu.Lock()
	g.setLimits(limits)
	for _, gate := range g.gates {
		gate.Changed()
	}
	g.mu.Unlock()
	g.estimate()
	return g.each(p, func(q *Pool) error {
		q.sizeFronts(limits.Hard.Bytes)
		q.keepUpstream()
		if over := -q.headroom(); over > 0 {
			q.flush()
			q.giveBack(over)
		}
		q.trimToSoft()
		return nil
	})
}

// headroom returns how many bytes may still be reserved; below 0 after a limit has
// fallen.
func (p *Pool) headroom() int64 {
	hard := p.hard.Load()
	if hard == 0 {
		return MaxBytes
	}
	return p.tracker.Headroom(hard)
}

// sizeFronts sets how much the fronts may keep under a hard limit, and empties
// them.
func (p *Pool) sizeFronts(hard int64) {
	keep, slack := int64(keepMax), int64(slackMax)
	if n := int64(len(p.fronts)); hard > 0 {
		keep = min(keep, hard/n)
		slack = min(slack, hard/(64*n))
	}
	if p.cfg.ExactPeaks {
		slack = 0
	}
	p.eachFront(func(f *front) {
		f.flush(&p.core)
		f.keep, f.count.Slack = keep, slack
	})
}
