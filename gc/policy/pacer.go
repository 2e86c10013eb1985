package policy

import (
	"math"
	"math/bits"
	"time"
)

// pacer starts cycles beside the program, just so early that each ends before headroom does.
// It learns how early from what the program did. It is our own, and the default.
//
// # The rule
//
// Write n for the bytes that would be live had no cycle ever freed any, D for
// those of them that were dropped, and g for the length of a cycle. What a cycle
// started at a moment i frees is what was dropped before i. So headroom lasts
// until n reaches
//
//	limit + D(i)
//
// however late that cycle ends: the only thing that a cycle buys is D(i). A cycle that is still
// under way then holds the program for the rest of its length. One that started while there
// was room for b bytes more gives these up, and cycles come so much more often. A policy that pays
// e + Share g per cycle does best in the long run if it makes
//
//	e + price b
//
// least, with price = what cycles cost / what they free, so far and in drills, in
// seconds per byte: the condition of an average-cost optimum. It is the rule of
// the newsvendor: late costs time, early costs bytes, and the price is the rate of exchange.
//
// # How early
//
// A cycle starts once room, which is headroom less the request, is less than
//
//	guess + margin
//
// A guess says what the program is about to allocate until a cycle could be over that starts at the
// next opportunity. A history of requests and syncs finds the last times at which the program did what
// it does now, as LZ77 does. The most that followed the last eight times is one guess; a second is none,
// and a third none unless the program allocates so fast that nothing early is worth its bytes. Where the program waits, a
// cycle is hidden for nothing: two more guesses, none and what followed the last time, then add the room that
// this is worth. The last one looks further: it follows what the program did the last time to the end of headroom, and
// plans for the best place on the way. How long a cycle takes is what is told, corrected by what cycles took. The margin is a share of the limit. Which
// guess is best, and with which margin, is found by drills: see [practice].
// So a forecast that keeps failing costs no more than having none, and no constant says how careful
// to be.
//
// Where a cycle outlasts headroom, nothing can be hidden, and drills say not to
// start early at all: a blocking cycle where headroom ends.
//
// # Where memory ends
//
// Fragments, other processes and a library's own memory are in no limit. Where something does not
// fit that would have under the limit, memory ends earlier. Then the limit to go by is the
// most that was ever granted, and whatever is above it is asked for beside a cycle: see [ceiling].
//
// # Memory
//
// With a price of memory C, or without a limit, headroom is at most what
// MemBalancer's square-root rule grants (see [sqrt]): sqrt(g rate / C). Small
// prices give more memory and fewer cycles.
//
// The zero value takes collector time to be free. State is bounded, about 360 KiB. A decision takes some tenths of a microsecond,
// and one is made for each request or growth of limit/1024, and each sync.
type pacer struct {
	Share  float64 // price of collector time, in seconds of pause per second
	Memory float64 // price of memory, per byte; 0 = free up to the limit
	CPU    float64 // share of time that cycles are to take, 0 to 1; 0 = what the limit and the price of memory ask for

	busy time.Duration // sum of the processor time that cycles took
	last time.Duration // when the last cycle started

	freed int64         // by all cycles
	held  time.Duration // sum of the exposed pauses
	wary  int           // cycles for which to remember that one freed too little

	asleep int64 // nothing happens at an allocation before this many bytes are live

	clock    clock
	past     history
	practice practice
	price    price
	stretch  stretch
	flow     flow
	ceiling  ceiling
	guess    [guesses]float64 // bytes that will be allocated until a cycle could be over
	followed float64          // bytes that followed the last time
	began    int64            // total at which the last cycle started
	early    int64            // room that there was
	kept     int64            // bytes that it found reachable
	headroom int64            // that it left
	begun    mark             // where the cycle under way began
	newest   mark             // the last point
}

// A mark is a moment that a cycle will tell about.
type mark struct {
	entry int64 // of the history; 0 if there is none
	total int64
}

// A moment is where a program is: the time it has run, pauses and slowdown not counted,
// the bytes that would be live had no cycle freed any, and for how much of that
// time it waited.
type moment struct {
	time   time.Duration
	total  int64
	waited time.Duration
}

func (p *pacer) params() []Param {
	return []Param{
		bind(&p.Share, "share", 0.05, numberKind(0, 1), "price of a second of collector time, in seconds of pause"),
		bind(&p.Memory, "memory", 0, numberKind(0, 1), "price of memory per byte, as sqrt's c: trades memory for cycles; 0 uses all of a known limit"),
		bind(&p.CPU, "cpu", 0, percentKind(), "share of processor time that cycles are to take: memory as low as they can keep it; 0% = as the limit and the price of memory ask"),
	}
}

// Decide starts a cycle where room is less than the guess and the margin.
func (p *pacer) Decide(at Point) Decision {
	due := p.CPU > 0 && at.Now >= p.due(at.work())
	if !due && at.At == Allocation && granted(&at) < p.asleep {
		return Decision{Wake: p.asleep, Reason: "asleep"}
	}
	p.stretch.told, at.Cost = at.Cost, p.stretch.of(at.Cost)
	told := at.Sample.Limit
	known := p.ceiling.see(at.Sample.Live, told)
	at.Sample.Limit = p.ceiling.under(told)
	p.clock.see(&at, p.held)
	now := moment{p.clock.time, at.Sample.Live + p.freed, p.clock.waited}
	budget := p.budget(&at)
	grain := int64(1) << bits.Len64(uint64(budget>>10))
	p.asleep = p.wake(&at, known, grain)
	d := Decision{Wake: p.asleep}
	p.flow.see(now, at.Request, at.Cost)
	p.learn(&at, now, budget, grain)
	p.newest = mark{p.past.head - 1, now.total}
	switch {
	case at.Running:
		d.Action, d.Reason = p.beside(&at, grain)
		return d
	case exceeds(&at, told):
		d.Action, d.Reason = Block, "no headroom left"
	case exceeds(&at, known):
		d.Action, d.Reason = Overlap, "memory may end here"
	case due:
		d.Action, d.Reason = Overlap, "cycles may take more time"
	case p.CPU > 0 && p.Memory == 0 && told <= 0:
		d.Reason = "cycles have had their time" // and nothing else is short
	case granted(&at) > budget:
		d.Action, d.Reason = Overlap, "headroom used up"
	default:
		d.Action, d.Reason = p.choose(&at, now, budget)
	}
	if d.Action != Skip {
		p.begun = p.newest
		p.began = now.total
		p.early = max(0, budget-granted(&at))
		p.clock.lost = 0
	}
	return d
}

// learn brings the history and the drills to a point.
func (p *pacer) learn(at *Point, now moment, budget, grain int64) {
	if p.headroom == 0 {
		p.headroom = budget / 2
	}
	price := p.priced(at, budget)
	if p.past.see(now, at, grain) {
		p.foresee(at, now, budget, price)
	}
	wait := p.waitWorth(at, budget, price)
	p.guess[orWait], p.guess[lastOrWait] = wait, max(wait, p.followed)
	s := &scene{now: now, top: now.total + at.Request, guess: &p.guess, g: float64(at.Cost), slow: at.Slowdown, budget: budget, headroom: p.headroom, reachable: p.kept}
	if r := p.past.reachable(); r != unknown {
		s.reachable = r
	}
	p.practice.see(s)
	if p.practice.learned > 0 {
		p.practice.choose(s.g, price)
	}
}

// The guesses: how many bytes more or less will be allocated until a cycle could be over
// that starts at the next opportunity, or, planned, that starts at the best one.
const (
	noGuess    = iota
	mostLately // the most that followed the last few times that the program did what it does now
	whileSlow  // none; and no start where headroom goes so fast that its bytes are worth more than what they hide
	orWait     // none, but where the program waits, the room for which a cycle beside that is worth its bytes
	lastOrWait // what followed the last time, but likewise
	planned    // from the best place to start to the end of headroom: see plan
	guesses
)

const (
	paceOver  = 16 // of headroom: the bytes over which the pace is taken
	unhurried = 2  // times what a byte is worth: how long it has to last
)

// foresee makes the guesses anew that go by the history. Where nothing is known, it takes the margin that is
// best without a guess.
func (p *pacer) foresee(at *Point, now moment, budget int64, price float64) {
	last, most, ok := p.past.foresee()
	p.followed, p.guess[mostLately], p.guess[whileSlow] = float64(last), float64(most), 0
	if !ok {
		p.followed = marginOf[p.practice.plain] * float64(budget)
		p.guess[mostLately] = p.followed
	}
	if p.past.pace(p.headroom/paceOver) < unhurried*price {
		p.guess[whileSlow] = -float64(budget)
	}
	p.plan(at, now, budget, price)
}

// waitWorth is the room for which a cycle that starts beside the wait costs no more than one
// does on average: what the wait does not hide, and the bytes that it gives up.
func (p *pacer) waitWorth(at *Point, budget int64, price float64) float64 {
	if at.At != Sync || at.Wait <= 0 {
		return 0
	}
	saved := p.practice.cost - float64(max(0, at.Cost-at.Wait))
	return float64(min(toBytes(saved/price), budget/2))
}

// priced is what a byte is worth, in ns.
func (p *pacer) priced(at *Point, budget int64) float64 {
	return p.price.of(p.Share*float64(at.Cost)+p.practice.cost, budget)
}

// beside answers while a cycle is under way. After one that freed too little,
// so that the ladder had to follow, it waits one request early: then there is
// still time for another cycle, which costs half of what the ladder does.
func (p *pacer) beside(at *Point, grain int64) (Action, string) {
	limit := at.Sample.Limit
	if p.wary > 0 && at.At == Allocation && at.Request >= grain && !exceeds(at, limit) && exceeds(at, limit-at.Request) {
		return Block, "the next request would not fit"
	}
	return Skip, "cycle under way"
}

// due is when a cycle that takes g of processor time may start so that all take CPU of it. After a time
// with fewer cycles, at most shareOwed of them are made up for, at no more than a quarter of the time, which is
// what a collector's [Caps] allow; after one with more, at half the usual rate.
func (p *pacer) due(g time.Duration) time.Duration {
	period := float64(g) / p.CPU
	early := float64(p.busy+g)/p.CPU - float64(p.last)
	return p.last + time.Duration(min(max(early, min(period, float64(g)/mostCycles)), 2*period))
}

const (
	shareOwed  = 8    // cycles
	mostCycles = 0.25 // share of the time that they may take when they make up for others: the default of gc.Caps
)

// budget is the live bytes at which headroom ends.
func (p *pacer) budget(at *Point) int64 {
	limit, c := at.Sample.Limit, p.Memory
	if limit > 0 && c == 0 {
		return limit
	}
	if c == 0 {
		c = 3e-10 // V8's
	}
	h := max(2*miB, toBytes(math.Sqrt(float64(at.work())*p.flow.rate/c)))
	if p.CPU > 0 && p.Memory == 0 { // a guard: the time decides
		h = max(2*miB, toBytes(4*float64(at.work())*p.flow.rate/p.CPU))
	}
	soft := min(at.LiveAfter, math.MaxInt64-h) + h
	if limit > 0 {
		return min(limit, soft)
	}
	return soft
}

// wake asks again after a grain of growth, and at whatever may not fit.
func (p *pacer) wake(at *Point, known, grain int64) int64 {
	wake := at.Sample.Live + grain
	if known > 0 {
		wake = min(wake, known+1)
	}
	return wake
}

// exceeds reports whether the request does not fit under a limit.
func exceeds(at *Point, limit int64) bool { return limit > 0 && granted(at) > limit }

// choose decides where no cycle is under way and the request fits. A cycle that follows
// the last one at once frees next to nothing: it waits until half as much
// was allocated as there is room. So does one where a cycle has freed next to nothing before.
func (p *pacer) choose(at *Point, now moment, budget int64) (Action, string) {
	room := float64(budget - granted(at))
	switch {
	case !p.practice.due(room, &p.guess, budget):
		return Skip, "headroom lasts"
	case float64(now.total+at.Request-p.began) < halfway*room:
		return Skip, "a cycle would free too little"
	case p.past.knows(at.Sample.Live, fruitful*room):
		return Skip, "a cycle freed too little here"
	case p.price.got <= 0 && p.guess[whileSlow] < 0:
		return Skip, "headroom does not last"
	case p.practice.guess >= orWait && p.practice.guess < planned && at.At == Sync && at.Wait > 0:
		return Overlap, "the wait hides what the headroom is worth"
	case p.guess[p.practice.guess] == 0:
		return Overlap, "headroom may not outlast a cycle"
	case p.practice.guess == planned:
		return Overlap, "planned: the best place before headroom ends"
	}
	return Overlap, "foreseen: headroom does not outlast a cycle"
}

// Observe learns what a cycle cost and freed.
func (p *pacer) Observe(c Cycle) {
	lost := p.clock.end(c, c.Exposed, p.held)
	p.freed += c.Freed
	p.held += c.Exposed
	p.busy = max(p.busy, time.Duration(p.CPU*float64(c.Start))-shareOwed*c.work()) + c.work()
	p.last = c.Start
	p.asleep = 0
	p.ceiling.learn(c)
	if c.Trigger == TriggerNatural {
		return
	}
	if c.Trigger != TriggerRefusal {
		p.stretch.learn(c.Duration)
	}
	p.price.learn(float64(c.Exposed+lost)+p.Share*float64(c.Duration), float64(c.Freed), float64(p.early))
	p.early = 0
	if refusal := c.Trigger == TriggerRefusal; refusal || c.Exposed > 0 && c.Action == Overlap {
		p.practice.refuse(refusal)
	}
	p.practice.learned = drills
	m := p.begun
	p.begun, p.wary = mark{}, max(0, p.wary-1)
	if c.Trigger == TriggerRefusal {
		m, p.wary = p.newest, 8
	}
	p.kept = max(0, m.total-p.freed)
	p.past.learn(m.entry, p.kept)
	if c.Limit > 0 {
		p.headroom = max(1, c.Limit-c.LiveAfter)
	}
}

func (p *pacer) String() string { return textOf("pacer", p.params()) }
