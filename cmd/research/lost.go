package main

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/eagergc/eagergc/cmd/replay/experiment"
	"github.com/eagergc/eagergc/sim"
)

// A loss is a cell in which the policy is worse than a rival: more than 2 ms later,
// or with more than two refusals above its.
type loss struct {
	experiment.Cell
	Policy     *experiment.Outcome
	Rivals     []*experiment.Outcome // cudajl, sqrt, never
	Known      time.Duration
	ByDelay    bool
	ByRefusals bool
	Cause      Cause
	Headroom   time.Duration // for how long headroom lasts, on average: span / refusals of never
}

// A Cause is what a loss comes from; of several the first.
type Cause string

// Causes of a loss.
const (
	trade Cause = "price"    // it is later, and runs so much fewer cycles that its J is the least
	wrong Cause = "told"     // it does not lose if it is told the truth
	Short Cause = "headroom" // it lasts for less than a cycle on average, so that little can be hidden by anyone
	Rule  Cause = "rule"     // none of these
)

// worse reports by what an outcome loses.
func (l *loss) worse(o *experiment.Outcome) (delay, refusals bool) {
	for _, r := range l.Rivals {
		delay = delay || o.Delay() > r.Delay()+2*time.Millisecond
		refusals = refusals || o.RefusalCollections > r.RefusalCollections+2
	}
	return delay, refusals
}

// lose finds the lost cells, and what each is lost by.
func (t *tried) lose(ctx context.Context) error {
	for i, o := range t.Outcomes() {
		c := t.Cell(i)
		if c.Contender != 0 {
			continue
		}
		l := loss{Cell: c, Policy: o, Rivals: []*experiment.Outcome{t.Outcomes()[i+1], t.Outcomes()[i+3], t.Outcomes()[i+4]}, Known: t.Known(i)}
		l.Headroom = o.Span / time.Duration(max(1, l.Rivals[2].RefusalCollections))
		if l.ByDelay, l.ByRefusals = l.worse(o); l.ByDelay || l.ByRefusals {
			t.Lost = append(t.Lost, l)
		}
	}
	var cores errgroup.Group
	cores.SetLimit(runtime.GOMAXPROCS(0))
	for i := range t.Lost {
		cores.Go(func() (err error) {
			if err = context.Cause(ctx); err == nil {
				t.Lost[i].Cause, err = t.cause(&t.Lost[i])
			}
			return err
		})
	}
	return cores.Wait()
}

// cause runs the cell of a loss with less and less that could be wanting.
func (t *tried) cause(l *loss) (Cause, error) {
	if !l.ByRefusals && l.Policy.Objective() <= min(l.Rivals[0].Objective(), l.Rivals[1].Objective(), l.Rivals[2].Objective()) {
		return trade, nil
	}
	loses := func(who string) (bool, error) {
		c, err := experiment.ParseContender(who)
		if err != nil {
			return false, err
		}
		cfg := t.Config(l.Cell)
		cfg.Told = sim.Told{}
		r, err := c.Run(t.Workloads[l.Workload], cfg)
		delay, refusals := l.worse(&experiment.Outcome{Result: r})
		return delay || refusals, err
	}
	if t.Config(l.Cell).Told != (sim.Told{}) {
		if lost, err := loses(t.Contenders[0].String()); err != nil || !lost {
			return wrong, err
		}
	}
	if l.Headroom < t.Costs[l.Cost].Base {
		return Short, nil
	}
	return Rule, nil
}
