package policy

import (
	"math/bits"
	"time"
)

// pacer starts cycles beside the program, just so early that each ends before headroom does. It is our own, and
// the default for a device. POLICIES.md derives the rule, and has it in 40 lines: a cycle starts once room, which is headroom
// less the request, is less than a guess and a margin. A guess is what the program is about to allocate until a
// cycle could be over that starts at the next opportunity: see [forecast]. Which guess and margin cost least is
// found by [drills]. The zero value takes collector time to be free. State is bounded, about 200 KiB.
type pacer struct {
	Share float64 // price of collector time, in seconds of pause per second

	asleep int64         // nothing happens at an allocation before this many bytes are live
	freed  int64         // by all cycles
	held   time.Duration // sum of the exposed pauses

	clock    clock
	flow     flow
	length   correction
	ceiling  ceiling
	price    price
	forecast forecast
	drills   drills
	guess    [guesses]float64 // bytes
	followed float64          // bytes that followed the last time

	headroom int64 // that the last cycle left
	start    start // of the last cycle
}

// A start is where a cycle began.
type start struct {
	total, early, wall int64 // total there, room that there was, and total at which headroom ended
	keys               keys
	under              bool // the cycle is under way
}

// The guesses.
const (
	noGuess    = iota
	mostLately // the most that followed lately
	whileSlow  // none; and no start where headroom goes so fast that its bytes are worth more than what they hide
	orWait     // none; but where the program waits, the room for which a cycle beside that is worth its bytes
	lastOrWait // what followed the last time, but likewise
	guesses
)

const (
	halfway   = 0.5 // of the room is allocated since the last cycle started, or the next one would free too little
	fruitful  = 0.2 // of the room: what a cycle frees that starts early, as far as is known
	paceOver  = 4   // grains over which the pace is taken
	unhurried = 2   // times what a byte is worth: how long it has to last
)

func (p *pacer) params() []Param {
	return []Param{
		bind(&p.Share, "share", 0.05, numberKind(0, 1), "price of a second of collector time, in seconds of pause"),
	}
}

func (p *pacer) Decide(at Point) Decision {
	if at.At == Allocation && granted(&at) < p.asleep {
		return Decision{Wake: p.asleep, Reason: "asleep"}
	}
	p.length.told, at.Cost = at.Cost, p.length.of(at.Cost)
	told := at.Sample.Limit
	known := p.ceiling.see(at.Sample.Live, told)
	at.Sample.Limit = p.ceiling.under(told)
	p.clock.see(&at, p.held)
	now := moment{p.clock.time, at.Sample.Live + p.freed, p.clock.waited}
	p.flow.see(now, at.Request, at.Cost)
	budget := at.Sample.Limit
	if budget <= 0 {
		budget = at.LiveAfter + p.flow.headroom(at.work(), v8Price)
	}
	grain := int64(1) << bits.Len64(uint64(budget>>10))
	p.asleep = at.Sample.Live + grain
	if known > 0 {
		p.asleep = min(p.asleep, known+1)
	}
	p.learn(&at, now, budget, grain)
	d := Decision{Wake: p.asleep}
	switch {
	case at.Running:
		d.Reason = "cycle under way"
	case told > 0 && granted(&at) > told:
		d.Action, d.Reason = Block, "no headroom left"
	case known > 0 && granted(&at) > known:
		d.Action, d.Reason = Overlap, "memory may end here"
	case granted(&at) > budget:
		d.Action, d.Reason = Overlap, "headroom used up"
	default:
		d.Action, d.Reason = p.choose(&at, now, budget)
	}
	if d.Action != Skip {
		p.start = start{now.total, max(0, budget-granted(&at)), p.freed + budget, p.forecast.here, true}
		p.clock.lost = 0
	}
	return d
}

// learn brings the guesses and the drills to a point.
func (p *pacer) learn(at *Point, now moment, budget, grain int64) {
	if p.headroom == 0 {
		p.headroom = budget / 2
	}
	price := p.price.of(p.Share*float64(at.Cost)+p.drills.cost, budget)
	if p.forecast.see(now, at, grain) {
		p.foresee(now, budget, price)
	}
	wait := p.waitWorth(at, budget, price)
	p.guess[orWait], p.guess[lastOrWait] = wait, max(wait, p.followed)
	p.drills.see(&scene{
		now: now, top: now.total + at.Request, guess: &p.guess, used: guesses, g: float64(at.Cost), slow: at.Slowdown,
		price: price, budget: budget, headroom: p.headroom, walls: [2]int64{p.freed + budget, p.start.wall},
	})
}

// foresee makes the guesses anew that go by what the program does.
func (p *pacer) foresee(now moment, budget int64, price float64) {
	last, most, ok := p.forecast.followed()
	if !ok {
		last = p.drills.marginOf(p.drills.plain)
		most = last
	}
	p.followed, p.guess[mostLately], p.guess[whileSlow] = float64(last), float64(most), 0
	if p.drills.pace(now) < unhurried*price {
		p.guess[whileSlow] = -float64(budget)
	}
}

// waitWorth is the room for which a cycle that starts beside the wait costs no more than one
// does on average: what the wait does not hide, and the bytes that it gives up.
func (p *pacer) waitWorth(at *Point, budget int64, price float64) float64 {
	if at.At != Sync || at.Wait <= 0 {
		return 0
	}
	saved := p.drills.cost - float64(max(0, at.Cost-at.Wait))
	return float64(min(toBytes(saved/price), budget/2))
}

// choose decides where no cycle is under way and the request fits.
func (p *pacer) choose(at *Point, now moment, budget int64) (Action, string) {
	room := float64(budget - granted(at))
	kept := p.forecast.kept()
	switch {
	case room >= p.drills.room(&p.guess):
		return Skip, "headroom lasts"
	case float64(now.total+at.Request-p.start.total) < halfway*room:
		return Skip, "a cycle would free too little"
	case kept >= 0 && float64(at.Sample.Live-kept) < fruitful*room:
		return Skip, "a cycle freed too little here"
	case p.price.got <= 0 && p.guess[whileSlow] < 0:
		return Skip, "headroom does not last"
	case p.drills.guess >= orWait && at.At == Sync && at.Wait > 0:
		return Overlap, "the wait hides what the headroom is worth"
	case p.guess[p.drills.guess] == 0:
		return Overlap, "headroom may not outlast a cycle"
	}
	return Overlap, "foreseen: headroom does not outlast a cycle"
}

// Observe learns what a cycle cost and freed.
func (p *pacer) Observe(c Cycle) {
	lost := p.clock.end(c, c.Exposed, p.held)
	p.freed += c.Freed
	p.held += c.Exposed
	p.asleep = 0
	p.ceiling.learn(c)
	if c.Trigger == TriggerNatural {
		return
	}
	p.price.learn(float64(c.Exposed+lost)+p.Share*float64(c.Duration), float64(c.Freed), float64(p.start.early))
	kept, here := max(0, p.start.total-p.freed), &p.start.keys
	if c.Trigger == TriggerRefusal {
		kept, here = c.LiveAfter, &p.forecast.here
	} else {
		p.length.learn(c.Duration)
	}
	if p.start.under || c.Trigger == TriggerRefusal {
		p.forecast.visit(here, func(x *situation) { x.kept = kept })
	}
	p.start.early, p.start.under = 0, false
	if c.Limit > 0 {
		p.headroom = max(1, c.Limit-c.LiveAfter)
	}
}

func (p *pacer) String() string { return textOf("pacer", p.params()) }
