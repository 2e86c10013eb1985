package gc

import (
	"math"
	"math/bits"
	"time"
)

// Pacer starts cycles beside the program so that each ends just before
// headroom does, where it frees the most for what it costs. It is our own, and
// the default.
//
// # The rule
//
// Write n for the bytes that would be live had no cycle ever freed any, D for
// those of them that were dropped, and g for the cost of a cycle. What a cycle
// started at a moment i frees is what was dropped before i. So headroom lasts
// until n reaches
//
//	limit + D(i)
//
// however late that cycle ends: the only thing that a cycle buys is D(i). Let
// T be the time at which the headroom bought by the cycle before ends. A cycle
// started at i is still under way then for, and so exposes,
//
//	e(i) = max(0, time(i) + g - T)
//
// A policy that pays e + Share g per cycle and buys D does best in the long run
// if it starts each cycle where
//
//	c(i) = e(i) + f(i) - price D(i)
//
// is least. Price is what cycles cost / what they freed so far, in seconds per
// byte: the condition of an average-cost optimum, taking the future to be like
// the past from there on. f(i) looks one cycle further: headroom lasts until T(i)
// after this cycle, the next one starts at its end at the earliest, and so
// exposes at least
//
//	f(i) = max(0, time(i) + 2 g - T(i))
//
// up to g. Without it, a cycle that starts before much is dropped leaves too
// little headroom to hide the next. Where headroom outlasts a cycle the price
// is small, and the best i is the last one from which nothing is exposed. Where
// a cycle outlasts the headroom, the best i is T itself, or a place before it
// where most is dropped: a blocking cycle at the best place.
//
// # The futures
//
// T and D must be known ahead, and are not. A history remembers what the program
// did. The futures are what followed the last few moments that were most like
// the present one: those with the most requests and waits in common, then those
// with fewer, then those with requests of like size, then any. A cycle starts if that costs no more, on average over the
// futures, than to start it at the best later place of each. Where the program
// repeats itself, the futures agree and the average is a forecast. Where it does
// not, they are a sample of what may come, and one bad future in five is reason
// enough: a pause costs twenty times what a cycle does.
//
// Two things that no sample shows are learned. The growth that a future foresees
// is stretched by a share that rises with each pause that was not foreseen, and
// falls with each cycle without one, so that the two cost the same. And there is a
// small chance that none of the futures comes, but the most that was lately
// allocated in the time of a cycle.
//
// D is learned from cycles, each of which measures it at one moment; a moment
// inherits what was measured at those like it, and others are interpolated.
//
// # Limits, prices and shares
//
// Headroom ends at the limit. A refusal where there should have been room says
// that less is there, and what was reached is taken for the limit for a while.
// With a price of memory C, or without a limit, headroom is at most what
// MemBalancer's square-root rule grants (see [Sqrt]): sqrt(g rate / C). With CPU,
// cycles start so that they take that share of the time, whatever headroom is
// left, and earlier where headroom ends earlier.
//
// Beside a program that a cycle slows by a factor of 1 + s, a cycle costs the
// program s/(1+s) of the part that no wait hides, and the program gets that much
// less far in it.
//
// The zero value takes collector time to be free. State is bounded, about 450 KiB.
// A decision takes some tens of nanoseconds on average, and one is made for each
// request or growth of limit/512 to limit/1024, and each sync.
type Pacer struct {
	Share  float64 // price of collector time, in seconds of pause per second
	Memory float64 // price of memory, per byte; 0 = free up to the limit
	CPU    float64 // share of time that cycles are to take, 0 to 1; 0 = what the limit and the price of memory ask for

	busy time.Duration // sum of the cycles' lengths
	last time.Duration // when the last cycle started

	freed   int64         // by all cycles
	held    time.Duration // sum of the exposed pauses
	waiting bool          // an allocation waits for the cycle under way ...
	since   time.Duration // ... since then
	wary    int           // cycles for which to remember that one freed too little

	asleep int64 // nothing happens at an allocation before this many bytes are live
	look   int64 // no decision changes at an allocation before this total

	past    history
	futures futures
	price   price
	burst   burst
	stretch stretch
	ceiling ceiling
	begun   mark    // where the cycle under way began
	refused mark    // where an allocation came to wait for it
	slowed  float64 // ns that the cycle under way takes from the program beside it
}

// A mark is a moment that a cycle will tell about.
type mark struct {
	entry int64 // of the history; 0 if there is none
	total int64
}

// A moment is where a program is: the time it has run, pauses not counted,
// and the bytes that would be live had no cycle freed any.
type moment struct {
	time  time.Duration
	total int64
}

const (
	resolution = 9 // growth is looked at in steps of the budget / 2^resolution, rounded up to a power of two
	far        = 3 // with more headroom than far times the largest burst, no cycle starts
	again      = 8 // a decision to wait is looked at again once headroom has shrunk by 1/again
	afterShort = 8 // cycles for which one that freed too little is remembered
)

func (p *Pacer) params() []Param {
	return []Param{
		bind(&p.Share, "share", 0.05, numberKind(0, 1), "price of a second of collector time, in seconds of pause"),
		bind(&p.Memory, "memory", 0, numberKind(0, 1), "price of memory per byte, as sqrt's c: trades memory for cycles; 0 uses all of a known limit"),
		bind(&p.CPU, "cpu", 0, percentKind(), "share of time that cycles are to take: memory as low as they can keep it; 0% = as the limit and the price of memory ask"),
	}
}

// Decide starts a cycle where that costs no more than to wait.
func (p *Pacer) Decide(at Point) Decision {
	if at.At == Allocation && granted(at) < p.asleep {
		return Decision{Wake: p.asleep, Reason: "asleep"}
	}
	told := at.Sample.Limit
	at.Sample.Limit = p.ceiling.under(told)
	p.ceiling.ask(at, told)
	now := moment{at.Now - p.held, at.Sample.Live + p.freed}
	budget := p.budget(at)
	grain := int64(1) << bits.Len64(uint64(budget>>resolution))
	p.asleep = p.wake(at, grain)
	d := Decision{Wake: p.asleep}
	p.burst.see(now, at.Request, at.Cost)
	p.past.see(now, at, grain)
	switch {
	case at.Running:
		d.Action, d.Reason = p.beside(at, now, grain)
		return d
	case exceeds(at, at.Sample.Limit):
		d.Action, d.Reason = Block, "no headroom left"
	case p.CPU > 0 && at.Now >= p.due(at.Cost):
		d.Action, d.Reason = Overlap, "cycles may take more time"
	default:
		d.Action, d.Reason = p.choose(at, now, budget)
	}
	if d.Action != Skip {
		p.begun = mark{p.past.head - 1, now.total}
		p.slowed = slowdown(at)
	}
	return d
}

// slowdown is how much of a cycle started now the program beside it loses.
func slowdown(at Point) float64 {
	return at.Slowdown / (1 + at.Slowdown) * float64(max(0, at.Cost-at.Wait))
}

// beside answers while a cycle is under way. After one that freed too little,
// so that the ladder had to follow, it waits one request early: then there is
// still time for another cycle, which costs half of what the ladder does.
func (p *Pacer) beside(at Point, now moment, grain int64) (Action, string) {
	limit := at.Sample.Limit
	short := exceeds(at, limit)
	early := !short && p.wary > 0 && at.At == Allocation && at.Request >= grain && exceeds(at, limit-at.Request)
	if (short || early) && !p.waiting {
		p.waiting, p.since = true, at.Now
		if short {
			p.refused = mark{p.past.head - 1, now.total}
		}
	}
	if early {
		return Block, "the next request would not fit"
	}
	return Skip, "cycle under way"
}

// due is when a cycle of length g may start so that all take CPU of the time.
// After a time with fewer or more cycles it is made up for at twice and at half
// the usual rate.
func (p *Pacer) due(g time.Duration) time.Duration {
	period := float64(g) / p.CPU
	early := float64(p.busy+g)/p.CPU - float64(p.last)
	return p.last + time.Duration(min(max(early, period/2), 2*period))
}

// budget is the live bytes at which headroom ends.
func (p *Pacer) budget(at Point) int64 {
	limit, c := at.Sample.Limit, p.Memory
	if limit > 0 && c == 0 {
		return limit
	}
	if c == 0 {
		c = 3e-10 // V8's
	}
	h := max(2*miB, toBytes(math.Sqrt(float64(at.Cost)*p.burst.rate/c)))
	if p.CPU > 0 && p.Memory == 0 { // a guard: the time decides
		h = max(2*miB, toBytes(4*float64(at.Cost)*p.burst.rate/p.CPU))
	}
	soft := min(at.LiveAfter, math.MaxInt64-h) + h
	if limit > 0 {
		return min(limit, soft)
	}
	return soft
}

// wake asks again after a grain of growth, and at whatever does not fit.
func (p *Pacer) wake(at Point, grain int64) int64 {
	wake := at.Sample.Live + grain
	if at.Sample.Limit > 0 {
		wake = min(wake, at.Sample.Limit+1)
	}
	return wake
}

// exceeds reports whether the request does not fit under a limit.
func exceeds(at Point, limit int64) bool { return limit > 0 && granted(at) > limit }

// choose decides where no cycle is under way and the request fits.
func (p *Pacer) choose(at Point, now moment, budget int64) (Action, string) {
	room := float64(budget - granted(at))
	switch {
	case room > far*p.burst.most:
		return Skip, "headroom lasts"
	case at.At == Allocation && now.total+at.Request < p.look:
		return Skip, "a better place comes"
	}
	q := question{
		now: now, request: at.Request,
		g: float64(at.Cost) / (1 + at.Slowdown), end: float64(budget + p.freed), limit: float64(budget),
		price:   p.price.of(budget, at.Cost, p.Share),
		stretch: p.stretch.share,
	}
	q.surprise = unforeseen * q.g * max(0, 1-room/p.burst.most)
	start, next := p.futures.weigh(&p.past, &q)
	p.look = min(next, now.total+int64(room/again))
	if !start {
		return Skip, "a better place comes"
	}
	p.stretch.started(p.futures.exposes, q.price*p.burst.most/q.g)
	return Overlap, "best place before headroom ends"
}

// Observe learns what a cycle cost and freed.
func (p *Pacer) Observe(c Cycle) {
	exposed := c.Exposed
	if p.waiting {
		exposed = max(exposed, c.Start+c.Duration-p.since)
		p.waiting = false
	}
	p.freed += c.Freed
	p.held += exposed
	p.busy += c.Duration
	p.last = c.Start
	p.asleep, p.look = 0, 0
	p.burst.forget()
	p.ceiling.learn(c)
	if c.Trigger == TriggerNatural {
		return
	}
	p.stretch.learn(exposed, c.Duration)
	p.price.learn(float64(exposed)+p.slowed+p.Share*float64(c.Duration), float64(c.Freed))
	m := p.begun
	p.begun, p.slowed, p.wary = mark{}, 0, max(0, p.wary-1)
	if c.Trigger == TriggerRefusal {
		m, p.refused, p.wary = p.refused, mark{}, afterShort
	}
	p.past.learn(m.entry, m.total-p.freed)
}

// String returns the text form, such as pacer or pacer:memory=1e-10.
func (p *Pacer) String() string { return textOf("pacer", p.params()) }
