package gc

import "time"

// An Outlook is what a [Pacer] expects from a point on until headroom ends. It is for
// pictures and tests: a decision does not need it.
type Outlook struct {
	Places []Place // in order; the first is the present one, headroom ends at the last
	Chosen int     // index of the place at which the next cycle is to start
	Price  float64 // ns of pause that one more freed byte is worth
}

// A Place is a moment at which the next cycle could start.
type Place struct {
	Time    time.Duration // on the clock of [Point.Now], if no pause comes before
	Live    int64         // bytes live once its request is granted, if no cycle ends before
	Yield   int64         // bytes that a cycle which starts here frees
	Exposed time.Duration // for how long that cycle holds the program, with the margin for errors
}

// Cost is what the rule makes least, in ns: the pause, less the worth of the yield.
func (o *Outlook) Cost(place int) float64 {
	p := &o.Places[place]
	return float64(p.Exposed) - o.Price*float64(p.Yield)
}

// Outlook returns what p expects right after it has answered a point with Decide. There
// are no places if nothing like the present is remembered, if what is remembered ends
// before headroom does, or while a cycle is under way. The slowdown beside a cycle is
// left out.
func (p *Pacer) Outlook(at Point) (o Outlook) {
	if p.past.match == 0 || !p.plan.made || p.plan.target == noTarget {
		return o
	}
	at.Sample.Limit = p.ceiling.under(at.Sample.Limit)
	end := p.budget(at) + p.freed
	o.Price = p.price.of(p.budget(at), at.Cost, p.Share+at.taken())
	o.Chosen = int(max(0, p.plan.target-p.past.match))
	now := moment{time: p.clock.time, total: at.Sample.Live + p.freed, waited: p.clock.waited}
	f := p.past.forecast(now)
	last := p.past.match
	for {
		e, ok := f.at(last)
		if !ok {
			return Outlook{}
		}
		if last > p.past.match && e.total+e.request > float64(end) {
			break
		}
		last++
	}
	wall, _ := f.at(last)
	r := ramp{to: p.past.reachableBefore(p.past.match), next: p.past.match}
	for s := p.past.match; s <= last; s++ {
		e, _ := f.at(s)
		o.Places = append(o.Places, Place{
			Time:    at.Now + time.Duration(e.time) - now.time,
			Live:    int64(e.total+e.request) - p.freed,
			Yield:   int64(e.total-r.at(&f, s, last, e.total)) - p.freed,
			Exposed: time.Duration(max(0, e.time+float64(at.Cost)+p.error.early-wall.time)),
		})
	}
	return o
}
